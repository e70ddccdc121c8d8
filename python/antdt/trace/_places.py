"""Where a thread is, in words: the script's own line, not PyTorch's."""
import os
import sys
import sysconfig
import traceback

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SCRIPT, _LIBRARY, _HIDDEN = 0, 1, 2
_kinds = {}
_MOST_STACK = 6000  # bytes of one thread


def _kind(path):
    """Whose file it is: the script's, some library's, or PyTorch's and this package's."""
    kind = _kinds.get(path)
    if kind is None:
        real = os.path.abspath(path)
        standard = sysconfig.get_paths().get("stdlib", "/nowhere") + os.sep
        if real.startswith(_HERE) or f"{os.sep}torch{os.sep}" in real or path.startswith("<"):
            kind = _HIDDEN
        elif "site-packages" in real or "dist-packages" in real or real.startswith(standard):
            kind = _LIBRARY
        else:
            kind = _SCRIPT
        _kinds[path] = kind
    return kind


def caller(frame):
    """(code, line) of the innermost frame that is the script's; of a library's where there is none."""
    library = None
    while frame is not None:
        kind = _kind(frame.f_code.co_filename)
        if kind == _SCRIPT:
            return frame.f_code, frame.f_lineno
        if kind == _LIBRARY and library is None:
            library = (frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return library


def text_of(place):
    """ "train.py:41 in main" """
    if place is None:
        return ""
    code, line = place
    text = f"{os.path.basename(code.co_filename)}:{line}"
    return text if code.co_name == "<module>" else f"{text} in {code.co_name}"


def stacks(first, hidden):
    """The stacks of all threads but those in `hidden`, that of the thread `first` in front."""
    frames = sys._current_frames()
    order = sorted(frames, key=lambda ident: (ident != first, ident))
    texts = []
    for ident in order:
        if ident in hidden:
            continue
        name = "main thread" if ident == first else f"thread {ident}"
        lines = [line for entry in traceback.extract_stack(frames[ident])
                 if not entry.filename.startswith(_HERE)
                 for line in traceback.format_list([entry])]
        texts.append(f"{name} (most recent call last):\n" + "".join(lines)[-_MOST_STACK:])
        if len(texts) == 16:
            break
    return "\n".join(texts)
