"""Operations that give different bits from run to run on a GPU.

Sources: what the GPU kernels of TensorFlow 2.21 say when they refuse to run under
`enable_op_determinism`; the deterministic kernels listed in the release notes of
TensorFlow 2.8; the list of operations in TensorFlow's RFC "Enabling Determinism in
TensorFlow" (20210119-determinism).
"""

import dataclasses
from collections.abc import Iterable, Mapping

from tf2verify.records.observation import SourceLine


@dataclasses.dataclass(frozen=True)
class GpuKernel:
  """The kernel of an operation on a GPU.

  Attributes:
    op_type: TensorFlow's.
    forward: the type of the operation whose gradient it is; '' for none.
    remedy: what to do, where `enable_op_determinism` has no other kernel for it; ''
      where it has.
  """

  op_type: str
  forward: str = ''
  remedy: str = ''


_ON_CPU = 'place it on the CPU with tf.device'
_NEAREST = 'resize with a different method (bilinear has a deterministic kernel), or ' + _ON_CPU
_RESOURCE = 'use resource variables (use_resource=True), whose scatter operations are deterministic'

_REFUSED = (
  GpuKernel('AdjustContrast', remedy=_ON_CPU),
  GpuKernel('AdjustContrastv2', remedy=_ON_CPU),
  GpuKernel('Bincount', remedy=_ON_CPU),
  GpuKernel('CropAndResizeGradBoxes', 'CropAndResize', _ON_CPU),
  GpuKernel('CropAndResizeGradImage', 'CropAndResize', _ON_CPU),
  GpuKernel('DenseBincount', remedy=_ON_CPU),
  GpuKernel('Dilation2DBackpropFilter', 'Dilation2D', _ON_CPU),
  GpuKernel('Dilation2DBackpropInput', 'Dilation2D', _ON_CPU),
  GpuKernel('FakeQuantWithMinMaxVarsGradient', 'FakeQuantWithMinMaxVars', _ON_CPU),
  GpuKernel(
    'FakeQuantWithMinMaxVarsPerChannelGradient', 'FakeQuantWithMinMaxVarsPerChannel', _ON_CPU
  ),
  GpuKernel('MaxPoolGradWithArgmax', 'MaxPoolWithArgmax', _ON_CPU),
  GpuKernel('ResizeNearestNeighborGrad', 'ResizeNearestNeighbor', _NEAREST),
  GpuKernel('ScatterAdd', remedy=_RESOURCE),
  GpuKernel('ScatterDiv', remedy=_RESOURCE),
  GpuKernel('ScatterMul', remedy=_RESOURCE),
  GpuKernel('ScatterNdAdd', remedy=_RESOURCE),
  GpuKernel('ScatterNdSub', remedy=_RESOURCE),
  GpuKernel('ScatterNdUpdate', remedy=_RESOURCE),
  GpuKernel('ScatterSub', remedy=_RESOURCE),
  GpuKernel('ScatterUpdate', remedy=_RESOURCE),
  GpuKernel('SparseTensorDenseMatMul', remedy=_ON_CPU),
)
_SWITCHED = (
  GpuKernel('BiasAddGrad', 'BiasAdd'),
  GpuKernel('CTCLoss'),
  GpuKernel('CTCLossV2'),
  GpuKernel('Conv2DBackpropFilter', 'Conv2D'),
  GpuKernel('Conv2DBackpropInput', 'Conv2D'),
  GpuKernel('Conv3DBackpropFilterV2', 'Conv3D'),
  GpuKernel('Conv3DBackpropInputV2', 'Conv3D'),
  GpuKernel('DepthwiseConv2dNativeBackpropFilter', 'DepthwiseConv2dNative'),
  GpuKernel('DepthwiseConv2dNativeBackpropInput', 'DepthwiseConv2dNative'),
  GpuKernel('MaxPoolGrad', 'MaxPool'),
  GpuKernel('MaxPool3DGrad', 'MaxPool3D'),
  GpuKernel('ResizeBilinearGrad', 'ResizeBilinear'),
  GpuKernel('ResourceScatterAdd'),
  GpuKernel('ResourceScatterSub'),
  GpuKernel('ScatterNd'),
  GpuKernel('SegmentMean'),
  GpuKernel('SegmentProd'),
  GpuKernel('SegmentSum'),
  GpuKernel('SoftmaxCrossEntropyWithLogits'),
  GpuKernel('SparseSoftmaxCrossEntropyWithLogits'),
  GpuKernel('TensorScatterAdd'),
  GpuKernel('TensorScatterSub'),
  GpuKernel('UnsortedSegmentProd'),
  GpuKernel('UnsortedSegmentSum', 'GatherV2'),
)
GPU_KERNELS: Mapping[str, GpuKernel] = {
  kernel.op_type: kernel for kernel in (*_REFUSED, *_SWITCHED)
}
# What a run has to watch for: the operations, and those whose gradients they are.
WATCHED = frozenset(GPU_KERNELS) | {kernel.forward for kernel in GPU_KERNELS.values()} - {''}


def kernels_in(op_types: Iterable[str]) -> tuple[GpuKernel, ...]:
  """Returns the kernels of a run that vary on a GPU, those that are refused first."""
  present = set(op_types)
  return tuple(kernel for op_type, kernel in GPU_KERNELS.items() if op_type in present)


def described(kernel: GpuKernel, sources: Mapping[str, SourceLine | None]) -> str:
  """Returns an operation and the user's line of it, or of the one whose gradient it is."""
  source = sources.get(kernel.op_type) or sources.get(kernel.forward)
  return f'{kernel.op_type} ({source})' if source is not None else kernel.op_type
