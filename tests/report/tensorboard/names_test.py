from absl.testing import absltest

from tf2verify.report.tensorboard.names import folder_name, tag


class NamesTest(absltest.TestCase):
  def test_readable(self):
    self.assertEqual(folder_name('a/b_test.py::DenseCase'), 'a.b_test.DenseCase')
    self.assertEqual(folder_name('package.module::Ünï'), 'package.module.Ünï')
    self.assertEqual(folder_name('broken.py'), 'broken')

  def test_nothing_leaves_the_folder_or_is_hidden(self):
    for target in ('../../x.py::A', '/tmp/x.py::A', '.hidden/x.py::A', 'a.py::<script>', '::', '/'):
      name = folder_name(target)
      self.assertRegex(name, r'^[\w-][\w.-]*$')
      self.assertNotIn('/', name)

  def test_other_targets_have_other_names(self):
    targets = ['a.py::x y', 'a.py::x<y', 'a.py::x.y', '/a.py::x.y', f'{"ü" * 200}::A', 'ü' * 201]
    names = {folder_name(target) for target in targets}
    self.assertLen(names, len(targets))
    self.assertLess(max(len(name.encode()) for name in names), 200)

  def test_tags_keep_names_but_no_control_characters(self):
    self.assertEqual(tag('a', 'w/x:0 <b>\n\x00\ud800'), 'a/w/x:0 <b>\\x0a\\x00\\ud800')


if __name__ == '__main__':
  absltest.main()
