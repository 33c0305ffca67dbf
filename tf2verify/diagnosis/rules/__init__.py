"""Known porting mistakes, one per file; `RULES` is the only registry."""

from tf2verify.diagnosis.rules.rule import Rule

RULES: tuple[Rule, ...] = ()

__all__ = ['RULES', 'Rule']
