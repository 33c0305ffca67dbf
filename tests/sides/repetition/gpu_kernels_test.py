import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.observation import SourceLine
from tf2verify.sides.repetition import gpu_kernels


class GpuKernelsTest(absltest.TestCase):
  def test_every_operation_exists(self):
    for op_type in sorted(gpu_kernels.WATCHED):
      with self.subTest(op_type):
        self.assertTrue(hasattr(tf.raw_ops, op_type))

  def test_kernels_of_a_run(self):
    found = gpu_kernels.kernels_in(['MatMul', 'Conv2DBackpropInput', 'ResizeNearestNeighborGrad'])
    self.assertEqual(
      [kernel.op_type for kernel in found], ['ResizeNearestNeighborGrad', 'Conv2DBackpropInput']
    )
    self.assertIn('bilinear', found[0].remedy)
    self.assertEqual(found[1].remedy, '')
    self.assertEmpty(gpu_kernels.kernels_in(['MatMul', 'ResizeNearestNeighbor']))

  def test_line_of_the_operation_whose_gradient_it_is(self):
    (kernel,) = gpu_kernels.kernels_in(['ResizeNearestNeighborGrad'])
    line = SourceLine('model.py', 7, 'call', 'resize(x)')
    said = gpu_kernels.described(kernel, {kernel.op_type: None, kernel.forward: line})
    self.assertEqual(said, 'ResizeNearestNeighborGrad (model.py:7, in call: resize(x))')
    self.assertEqual(gpu_kernels.described(kernel, {}), 'ResizeNearestNeighborGrad')


if __name__ == '__main__':
  absltest.main()
