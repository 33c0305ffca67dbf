"""Sessions that run a graph as it was built."""

from typing import Any, Dict, List, Optional, Sequence

from .private_tensorflow import v1
from .user_code import user_code


def open_session(graph: Any) -> Any:
  """Opens a session that runs a graph as it was built: without grappler's rewriting."""
  config = v1.ConfigProto()
  options = config.graph_options.rewrite_options
  if hasattr(options, 'disable_meta_optimizer'):
    options.disable_meta_optimizer = True
  config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
  return v1.Session(graph=graph, config=config)


def fetch(session: Any, names: Sequence[str], feeds: Optional[Dict[str, Any]] = None) -> List[Any]:
  """Runs ops and tensors by name; an error is the user's graph's."""
  if not names:
    return []
  with user_code('running the graph'):
    return list(session.run(list(names), feeds))


class Sessions:
  """The one session that is open: runs of one graph share it where they can."""

  def __init__(self) -> None:
    self._session: Any = None

  def open(self, graph: Any, tables: Sequence[str], fresh: bool) -> Any:
    """Returns a session of a graph, its tables initialized."""
    if fresh or self._session is None or self._session.graph is not graph:
      self.close()
      self._session = open_session(graph)
      fetch(self._session, tables)
    return self._session

  def close(self) -> None:
    """Lets go of the session."""
    if self._session is not None:
      self._session.close()
      self._session = None
