"""What `kept_model` imports."""

LEVEL = 1.0


class Base:
  level = 2.0

  def shifted(self, x):
    return x + self.level


def shared(x):
  return x * LEVEL
