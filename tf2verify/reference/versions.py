"""The format of recordings, and the versions of what its numbers depend on."""

SCHEMA = 1
KIND = 'tf2verify recording'
# Of everything that both sides have to do alike for their numbers to be comparable.
VERSIONS = {'recorder': 1, 'fill': 1, 'seeds': 1, 'loss': 1, 'sampling': 1, 'noise': 1}
