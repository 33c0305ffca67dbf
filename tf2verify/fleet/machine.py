"""How much memory there is for cases."""

import os

# What of the machine's memory all jobs may take together, where nothing is said.
_SHARE_OF_MEMORY = 0.9
_CGROUP_LIMITS = ('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes')


def memory_of_machine() -> int:
  """Returns the bytes of memory that this machine, or the container, has."""
  found = [os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')]
  for path in _CGROUP_LIMITS:
    try:
      with open(path, encoding='ascii') as file:
        text = file.read().strip()
    except OSError:
      continue
    if text.isdecimal():
      found.append(int(text))
  return min(found)


def processors() -> int:
  """Returns how many processors this process may use."""
  return len(os.sched_getaffinity(0))


def memory_for_jobs() -> int:
  """Returns the bytes that all jobs may take together."""
  return int(memory_of_machine() * _SHARE_OF_MEMORY)
