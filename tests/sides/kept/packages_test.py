"""What the user leaves with installed packages, and what objects hold where it is easily missed."""

import enum
import functools
import importlib
import os
import sys
import tempfile
from unittest import mock

import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized

from tf2verify.sides.kept import packages
from tf2verify.sides.kept.fingerprint import fingerprint
from tf2verify.tensorflow_internals import registries

_CODE = """
SETTINGS = {}


class Loader:
  known = {}


def bind(name, value):
  SETTINGS[name] = value


def configurable(function):
  def wrapper(*arguments):
    return function(*arguments, **SETTINGS)

  return wrapper


def subclassed(kind):
  class Wrapped(kind):
    pass

  return Wrapped
"""


def _of(value):
  return fingerprint([('value', value)], [], {}).parts


class _Kept:
  __slots__ = ('__inner', 'units')

  def __init__(self, inner):
    self.units = 1
    self.__inner = inner


def _member(value):
  kind = enum.Enum('Kind', 'PLAIN')
  kind.PLAIN.scale = value
  return kind.PLAIN


def _documented(text):
  class Documented:
    pass

  Documented.__doc__ = text
  return Documented


def _times(factor):
  return lambda x: x * factor


class PackagesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = os.path.join(
      self.enter_context(tempfile.TemporaryDirectory()), 'lib', 'site-packages'
    )
    os.makedirs(self.folder)
    self._write(_CODE)
    self.enter_context(mock.patch.object(sys, 'path', [self.folder, *sys.path]))
    self.enter_context(mock.patch.object(sys, 'dont_write_bytecode', True))
    self.addCleanup(sys.modules.pop, 'kept_package', None)
    self.package = importlib.import_module('kept_package')

  def _write(self, text):
    with open(os.path.join(self.folder, 'kept_package.py'), 'w') as file:
      file.write(text)

  def _both(self, value, change):
    """Returns digests before and after a change; that nothing else changes them is asserted."""
    before = _of(value)
    self.assertEqual(_of(value), before)
    change()
    return before, _of(value)

  def test_settings_that_a_wrapper_reads(self):
    decorated = self.package.configurable(lambda x, scale=1.0: x * scale)
    self.package.bind('scale', 2.0)
    before, after = self._both(decorated, lambda: self.package.bind('scale', 3.0))
    self.assertNotEqual(before, after)

  @parameterized.named_parameters(
    ('number', lambda v: v),
    ('list', lambda v: [{'deep': (v,)}]),
    ('function', _times),
    ('partial', lambda v: functools.partial(max, v)),
    ('method', lambda v: _Kept(v).__init__),
    ('instance', _Kept),
  )
  def test_what_a_package_holds(self, made):
    reads = lambda package=self.package: package.SETTINGS['held']  # noqa: E731
    self.package.bind('held', made(2.0))
    before, after = self._both(reads, lambda: self.package.bind('held', made(3.0)))
    self.assertNotEqual(before, after)

  def test_what_a_class_of_a_package_holds(self):
    self.package.Loader.known['scale'] = _times(2.0)
    change = functools.partial(self.package.Loader.known.update, scale=_times(3.0))
    self.assertNotEqual(*self._both(self.package.Loader, change))

  def test_a_file_of_a_package(self):
    self.assertNotEqual(*self._both(self.package.bind, lambda: self._write(f'{_CODE}#')))

  def test_a_subclass_that_a_package_has_made(self):
    def made(value):
      return self.package.subclassed(type('Own', (), {'scale': value}))

    self.assertEqual(_of(made(2.0)), _of(made(2.0)))
    self.assertNotEqual(_of(made(2.0)), _of(made(3.0)))

  def test_what_no_code_uses_does_not_count(self):
    before, after = self._both(_times(2.0), lambda: self.package.bind('scale', 3.0))
    self.assertEqual(before, after)

  def test_a_scope_of_slim_that_was_left_open(self):
    scope = slim.arg_scope([slim.conv2d], stride=2)
    self.addCleanup(lambda: scope.__exit__(None, None, None))
    self.assertNotEqual(*self._both(lambda x: slim.conv2d(x, 3, 3), scope.__enter__))

  def test_where_a_function_is_in_memory_does_not_count(self):
    texts = ('<function f at 0x7f0000000001>', '<function f at 0x7f0000000002>')
    self.assertEqual(*map(_of, texts))
    self.assertNotEqual(*map(_of, ('rows at 0x10>', 'rows at 0x20>')))


class RegistriesTest(parameterized.TestCase):
  def _registered(self, registry, key, value, texts=()):
    found = {}
    with mock.patch.object(registries, 'entries', lambda: [(registry, key, value)]):
      packages.registered(set(texts), found.__setitem__)
    return list(found.values())

  def test_gradients_of_the_user(self):
    name = 'KeptGradientOfTheTest'
    function = _times(2.0)
    tf.RegisterGradient(name)(function)
    self.assertIn(function, [value for _, key, value in registries.entries() if key == name])
    registry = registries.Registry('gradients')
    self.assertEqual(self._registered(registry, name, function), [function])
    partial = functools.partial(function)
    self.assertEqual(self._registered(registry, name, partial), [partial])
    self.assertEmpty(self._registered(registry, name, tf.nn.relu))

  def test_custom_objects_count_where_a_text_names_them(self):
    function = _times(2.0)
    with tf.keras.utils.custom_object_scope({'kept_activation': function}):
      found = [value for _, key, value in registries.entries() if key == 'kept_activation']
    self.assertEqual(found, [function])
    registry = registries.Registry('custom objects', is_of_ports=True)
    self.assertEmpty(self._registered(registry, 'Own>act', function, ('another',)))
    for text in ('act', 'Own>act'):
      self.assertEqual(self._registered(registry, 'Own>act', function, (text,)), [function])

  def test_a_conversion_and_an_operation_by_type(self):
    class Held:
      pass

    def convert(value, dtype=None, name=None, as_ref=False):
      return tf.constant(1.0)

    tf.register_tensor_conversion_function(Held, convert)
    self.assertIn(convert, [value for *_, value in registries.entries()])

  def test_the_digest_has_them(self):
    scale = [_times(2.0)]
    registry = registries.Registry('gradients')
    with mock.patch.object(registries, 'entries', lambda: [(registry, 'Kept', scale[0])]):
      before = _of(_of)
      scale[0] = _times(3.0)
      self.assertNotEqual(before, _of(_of))


class HoldsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('a_slot_of_two_underscores', _Kept),
    ('an_attribute_of_a_member', _member),
    ('the_documentation_of_a_class', lambda value: _documented(str(value))),
  )
  def test_is_seen(self, made):
    self.assertEqual(_of(made(2.0)), _of(made(2.0)))
    self.assertNotEqual(_of(made(2.0)), _of(made(3.0)))


if __name__ == '__main__':
  absltest.main()
