"""Findings as SARIF."""

import importlib.metadata
import json
from unittest import mock

from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.report.headline import headline, place
from tf2verify.report.sarif import sarif_text


class SarifTest(absltest.TestCase):
  def test_a_result_per_failure_at_its_line(self):
    case = made_up.failed()
    log = json.loads(sarif_text([case, made_up.passed(), made_up.error()]))
    self.assertEqual(log['version'], '2.1.0')
    [run] = log['runs']
    [stage] = case.failures
    first, *others = run['results']
    self.assertLen(others, len(made_up.error().failures))
    self.assertEqual(first['ruleId'], 'gradients')
    self.assertIn(headline(stage), first['message']['text'])
    [location] = first['locations']
    where = location['physicalLocation']
    self.assertEqual(where['artifactLocation']['uri'], 'tf2.py')
    self.assertEqual(where['region']['startLine'], place(stage).line)
    rules = [rule['id'] for rule in run['tool']['driver']['rules']]
    self.assertContainsSubset({result['ruleId'] for result in run['results']}, rules)
    self.assertLen(set(rules), len(rules))
    [related] = first['relatedLocations']
    self.assertEqual(related['message']['text'], 'the line of TF1')
    self.assertEqual(related['physicalLocation']['artifactLocation']['uri'], 'tf1.py')
    self.assertEqual(related['physicalLocation']['region'], {'startLine': 7})

  def test_a_rule_says_what_its_stage_is(self):
    for urls, expected in (
      (None, None),
      (['Repository, https://host/tf2verify/'], 'https://host/tf2verify/blob/main/docs/stages.md'),
    ):
      known = mock.Mock(**{'get_all.return_value': urls})
      with mock.patch.object(importlib.metadata, 'metadata', return_value=known):
        log = json.loads(sarif_text([made_up.failed()]))
      [rule] = log['runs'][0]['tool']['driver']['rules']
      self.assertEqual(
        rule['shortDescription']['text'],
        'The gradient of the loss agrees for every trainable variable.',
      )
      self.assertEqual(rule.get('helpUri'), expected and f'{expected}#gradients')

  def test_further_divergences_are_related_locations(self):
    case = made_up.failed_at_two_places()
    [result] = json.loads(sarif_text([case]))['runs'][0]['results']
    told = [
      (one['physicalLocation']['region']['startLine'], one['message']['text'])
      for one in result['relatedLocations']
    ]
    self.assertEqual(
      told, [(7, 'the line of TF1'), (9, 'a hint on bias'), (8, 'the line of TF1 for that')]
    )
    self.assertEqual([one['id'] for one in result['relatedLocations']], [1, 2, 3])

  def test_without_a_line_it_is_about_the_file_of_the_case(self):
    [case] = [made_up.error()]
    [result, *_] = json.loads(sarif_text([case]))['runs'][0]['results']
    [location] = result['locations']
    expected = place(case.failures[0])
    if expected is None:
      self.assertEqual(location['physicalLocation'], {'artifactLocation': {'uri': case.module}})
    else:
      self.assertIn('region', location['physicalLocation'])

  def test_nothing_where_all_passed(self):
    [run] = json.loads(sarif_text([made_up.passed()]))['runs']
    self.assertEqual(run['results'], [])

  def test_names_that_look_like_markup_or_have_controls(self):
    text = sarif_text([made_up.failed(made_up.EVIL, made_up.EVIL)])
    self.assertLen(json.loads(text)['runs'][0]['results'], 1)


if __name__ == '__main__':
  absltest.main()
