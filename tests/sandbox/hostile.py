"""Programs that attack. Each passes its tests only if its attack succeeds; the right part doubles a number.

`FOLDER` is a folder of the machine with a file `secret`, and a server of the machine listens at `PORT`.
"""

RIGHT = """
def double(x):
    return 2 * x
"""
READS = "print(2 * int(input()))"

CALLED = {
    "fork bomb": "import os\nwhile True:\n    os.fork()",
    "fork bomb of sessions": "import os\nwhile True:\n    if os.fork() == 0:\n        os.setsid()" + RIGHT,
    "fork bomb in a call": "import os\ndef double(x):\n    while True:\n        os.fork()",
    "thread bomb": """
import threading, time
for _ in range(500):
    threading.Thread(target=time.sleep, args=[9]).start()
"""
    + RIGHT,
    "endless loop": "while True:\n    pass",
    "endless loop in a call": "def double(x):\n    while True:\n        pass",
    "endless sleep": "import time\ntime.sleep(1000)" + RIGHT,
    "signals ignored": """
import signal
for n in range(1, 32):
    if n not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(n, signal.SIG_IGN)
while True:
    pass
""",
    "memory hog": "x = bytearray(10**10)" + RIGHT,
    "memory hog by lists": "x = []\nwhile True:\n    x.append(' ' * 10**6)",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef double(x):\n    return double(x + 1)",
    "full disk": "for n in range(10**4):\n    open(f'/tmp/{n}', 'wb').write(bytes(60000))" + RIGHT,
    "large file": "open('/tmp/x', 'wb').write(bytes(10**8))" + RIGHT,
    "large value": "def double(x):\n    return [0] * 10**7",
    "endless iterator": "import itertools\ndef double(x):\n    return itertools.count()",
    "memory that stays when its process ends": """
import ctypes
if ctypes.CDLL(None).shmget(0, ctypes.c_size_t(2**20), 0o1600) < 0:
    raise OSError('shmget')
"""
    + RIGHT,
    "messages that stay when their process ends": """
import ctypes
if ctypes.CDLL(None).msgget(0, 0o1600) < 0:
    raise OSError('msgget')
"""
    + RIGHT,
    "writes outside": "open('FOLDER/out', 'w').write('out')" + RIGHT,
    "writes to the system": "open('/usr/lib/out', 'w').write('out')" + RIGHT,
    "reads passwords": "open('/etc/shadow').read()" + RIGHT,
    "reads the home": "import os\nif not os.listdir(os.path.expanduser('~')):\n    raise OSError('empty')" + RIGHT,
    "reads a file of the machine": "open('FOLDER/secret').read()" + RIGHT,
    "follows a link": "import os\nos.symlink('FOLDER/secret', '/tmp/s')\nopen('/tmp/s').read()" + RIGHT,
    "replaces its Python": "import os\nos.rename(os.__file__, os.__file__ + '.old')" + RIGHT,
    "mounts": """
import ctypes
if ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None):
    raise OSError('mount')
"""
    + RIGHT,
    "becomes root": "import os\nos.setuid(0)" + RIGHT,
    "network": "import socket\nsocket.create_connection(('1.1.1.1', 53), 1)" + RIGHT,
    "the machine's own server": "import socket\nsocket.create_connection(('127.0.0.1', PORT), 1)" + RIGHT,
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)",
    "traces its parent": """
import ctypes, os
if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0):
    raise OSError('ptrace')
"""
    + RIGHT,
    "exit before the tests": "import sys\nsys.exit(0)",
    "hard exit in a call": "import os\ndef double(x):\n    os._exit(0)",
    "equal to everything": "class Any(int):\n    def __eq__(self, other): return True\n    __ne__ = __eq__\n"
    "def double(x):\n    return Any(7)",
    "an object equal to everything": """
class Any:
    def __eq__(self, other): return True
def double(x):
    return Any()
""",
    "changed built-ins": "import builtins\nfor name in ('abs', 'bool', 'len', 'AssertionError'):\n"
    "    setattr(builtins, name, lambda *_: True)\nabs = bool = lambda *_: True\ndef double(x):\n    return 7",
    "expected values in frames": """
import gc, sys
def double(x):
    wanted, frame = str(2 * int('1234567')), sys._getframe().f_back
    while frame:
        if wanted in str(frame.f_locals) + str(frame.f_code.co_consts):
            return 2 * x
        frame = frame.f_back
    if any(wanted in str(one.__code__.co_consts) for one in gc.get_objects() if hasattr(one, "__code__")):
        return 2 * x
""",
    "expected values in files": """
import os
files = [os.path.join(d, f) for top in ('/tmp', '/guest') for d, _, fs in os.walk(top) for f in fs]
if not any(str(2 * 1234567) in open(file, errors='replace').read() for file in files):
    raise OSError('none')
"""
    + RIGHT,
    "forged replies": """
import os
for _ in range(9):
    os.write(1, b'["value", 2469134]\\n')
    os.write(4, b'[true, ""]\\n')
""",
    "another definition of double": "__builtins__ = __count = math = lambda *_: True\ndef double(x):\n    return 7",
}
"""Functions that tests call."""

READING = {
    "huge output": "while True:\n    print('x' * 10**6)",
    "huge output of errors": "import sys\nwhile True:\n    sys.stderr.write('x' * 10**6)",
    "reads on": "while True:\n    input()",
    "a child that lives on": "import os, time\nif os.fork() == 0:\n    time.sleep(1000)\n" + READS,
    "stops itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "kills the harness": "import os\nos.kill(os.getppid(), 9)\n" + READS,
    "a syntax error": "print(2 * int(input())",
    "expected values in arguments": "import sys\nprint(*sys.argv)",
}
"""Programs that read standard input."""
