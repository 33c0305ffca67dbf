"""Headless Chromium for tests, by its DevTools protocol over a pipe: no package is needed."""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

_NAMES = ('chromium', 'chromium-browser', 'google-chrome')
_SECONDS = 60


def executable():
  """Returns the path of Chromium; None where there is none."""
  return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
  """One page in a headless Chromium.

  Attributes:
    dialogs: messages of the dialogs that the page opened.
    errors: what the page's scripts raised, or its policy refused.
    requests: addresses that were asked for, the page's own included.
  """

  def __init__(self):
    self.dialogs, self.errors, self.requests = [], [], []
    self._number, self._answers, self._loaded = 0, {}, False
    # A folder of a browser that cannot be removed fails no test.
    self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    # The browser reads from descriptor 3 and writes to 4.
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (theirs_in, theirs_out)]

    def connect():
      os.dup2(high[0], 3)
      os.dup2(high[1], 4)

    self._process = subprocess.Popen(
      [
        executable(),
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--no-first-run',
        '--hide-scrollbars',
        f'--user-data-dir={self._profile.name}',
        '--remote-debugging-pipe',
        'about:blank',
      ],
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
      preexec_fn=connect,
      close_fds=False,  # Python's own are closed all the same
      start_new_session=True,
    )
    for end in (theirs_in, theirs_out, *high):
      os.close(end)
    self._out, self._in = ours_out, ours_in
    self._rest, self._session = b'', None
    [target] = [t for t in self._ask('Target.getTargets')['targetInfos'] if t['type'] == 'page'][:1]
    attached = self._ask('Target.attachToTarget', targetId=target['targetId'], flatten=True)
    self._session = attached['sessionId']
    for domain in ('Page', 'Runtime', 'Log', 'Network', 'Performance'):
      self._ask(f'{domain}.enable')

  def close(self):
    """Ends the browser and every process that it started."""
    # They still write to the profile for a moment after the first of them has ended.
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self._process.pid, signal.SIGKILL)
    self._process.wait(_SECONDS)
    os.close(self._out)
    os.close(self._in)
    self._profile.cleanup()

  def open(self, path, fragment=''):
    """Loads a file; returns when it has been loaded."""
    self.dialogs, self.errors, self.requests, self._loaded = [], [], [], False
    self._ask('Page.navigate', url=f'file://{path}{fragment}')
    self._until(lambda: self._loaded)

  def evaluate(self, expression):
    """Returns what an expression of JavaScript gives, waiting for a promise."""
    found = self._ask(
      'Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True
    )
    if 'exceptionDetails' in found:
      raise AssertionError(f'{expression}: {found["exceptionDetails"]}')
    return found['result'].get('value')

  def wait_for(self, expression):
    """Returns the value of an expression as soon as it is true."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
      value = self.evaluate(expression)
      if value:
        return value
      time.sleep(0.02)
    raise AssertionError(f'never true: {expression}')

  def press(self, key, code=None, text=None):
    """Presses and lets go a key: `Tab`, `Enter` (text is a carriage return), `a`."""
    numbers = {'Tab': 9, 'Enter': 13, ' ': 32}
    common = {'key': key, 'code': code or key, 'windowsVirtualKeyCode': numbers.get(key, 0)}
    text = {'Enter': '\r', ' ': ' '}.get(key) if text is None else text
    down = {'type': 'keyDown', **common, **({'text': text} if text else {'type': 'rawKeyDown'})}
    self._ask('Input.dispatchKeyEvent', **down)
    self._ask('Input.dispatchKeyEvent', type='keyUp', **common)

  def type(self, text):
    """Puts text in where the focus is."""
    self._ask('Input.insertText', text=text)

  def look(self, width=1280, height=900, dark=False):
    """Sets the size of the window, and what the reader prefers."""
    self._ask(
      'Emulation.setDeviceMetricsOverride',
      width=width,
      height=height,
      deviceScaleFactor=1,
      mobile=False,
    )
    scheme = {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}
    self._ask('Emulation.setEmulatedMedia', media='', features=[scheme])

  def screenshot(self, path=None, whole=False):
    """Returns a PNG of the window, or of the whole page, and writes it to a path."""
    shot = self._ask('Page.captureScreenshot', format='png', captureBeyondViewport=whole)
    png = base64.b64decode(shot['data'])
    if path is not None:
      with open(path, 'wb') as file:
        file.write(png)
    return png

  def pdf(self):
    """Returns the page as it prints."""
    return base64.b64decode(self._ask('Page.printToPDF', preferCSSPageSize=True)['data'])

  def accessibility_tree(self):
    """Returns role, name and properties of what a screen reader meets, in order."""
    nodes = self._ask('Accessibility.getFullAXTree')['nodes']
    return [
      (
        node['role']['value'],
        node.get('name', {}).get('value', ''),
        {p['name']: p['value'].get('value') for p in node.get('properties', ())},
      )
      for node in nodes
      if not node.get('ignored')
    ]

  def _ask(self, method, **parameters):
    self._number += 1
    number = self._number
    message = {'id': number, 'method': method, 'params': parameters}
    if self._session:
      message['sessionId'] = self._session
    written = json.dumps(message).encode() + b'\0'
    while written:
      written = written[os.write(self._out, written) :]
    self._until(lambda: number in self._answers)
    answer = self._answers.pop(number)
    if 'error' in answer:
      raise AssertionError(f'{method}: {answer["error"]}')
    return answer['result']

  def _until(self, done):
    end = time.monotonic() + _SECONDS
    while not done():
      if time.monotonic() > end:
        raise AssertionError('the browser did not answer')
      self._read()

  def _read(self):
    part = os.read(self._in, 2**20)
    if not part:
      raise AssertionError('the browser has ended')
    *messages, self._rest = (self._rest + part).split(b'\0')
    for message in messages:
      self._take(json.loads(message))

  def _take(self, message):
    if 'id' in message:
      self._answers[message['id']] = message
      return
    method, parameters = message['method'], message.get('params', {})
    if method == 'Page.loadEventFired':
      self._loaded = True
    elif method == 'Page.javascriptDialogOpening':
      self.dialogs.append(parameters['message'])
      # An answer is not waited for: this may be within another question.
      self._number += 1
      closing = {'id': self._number, 'method': 'Page.handleJavaScriptDialog'}
      closing |= {'params': {'accept': True}, 'sessionId': self._session}
      os.write(self._out, json.dumps(closing).encode() + b'\0')
    elif method == 'Runtime.exceptionThrown':
      self.errors.append(str(parameters['exceptionDetails']))
    elif method == 'Log.entryAdded':
      self.errors.append(parameters['entry']['text'])
    elif method == 'Network.requestWillBeSent':
      self.requests.append(parameters['request']['url'])
