"""Plain text as LaTeX that pdfLaTeX compiles without packages: a character is escaped, set, or shown as its number."""

import re
import unicodedata

_SIGNS = {
    **{sign: "\\" + sign for sign in "&%_#${}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedblright{}",
    **{"“": r"\textquotedblleft{}", "”": r"\textquotedblright{}", "‘": r"\textquoteleft{}", "’": r"\textquoteright{}"},
    **{"–": r"\textendash{}", "—": r"\textemdash{}", "‐": "-", "\u2011": "-", "\xa0": r"\nobreakspace{}"},
    **{"…": r"\dots{}", "•": r"$\bullet$", "·": r"$\cdot$", "†": r"\dag{}", "§": r"\S{}", "°": r"$^\circ$"},
    **{"ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}"},
    **{"å": r"\aa{}", "Å": r"\AA{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}", "©": r"\copyright{}"},
    **{"±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "−": r"$-$", "µ": r"$\mu$", "∞": r"$\infty$"},
    **{"≤": r"$\leq$", "≥": r"$\geq$", "≠": r"$\neq$", "≈": r"$\approx$", "→": r"$\to$", "←": r"$\leftarrow$"},
}
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma sigma tau upsilon phi "
    "chi psi omega"
)
_GREEK = {chr(ord("α") + place): name for place, name in enumerate(_GREEK_NAMES.split())}
_GREEK |= {letter.upper(): name.capitalize() for letter, name in _GREEK.items() if letter != "ς"}
_GREEK |= dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", "ABEZHIKMNOPTX", strict=True))
"""Names of commands in mathematics, and the Latin letters that look like Greek ones."""

_ACCENTS = {
    **{"\u0300": ("`", "grave"), "\u0301": ("'", "acute"), "\u0302": ("^", "hat"), "\u0303": ("~", "tilde")},
    **{"\u0304": ("=", "bar"), "\u0306": ("u", "breve"), "\u0307": (".", "dot"), "\u0308": ('"', "ddot")},
    **{"\u030a": ("r", "mathring"), "\u030b": ("H", ""), "\u030c": ("v", "check"), "\u0323": ("d", "")},
    **{"\u0327": ("c", ""), "\u0331": ("b", "")},
}
"""Commands for accents in text and in mathematics; empty where mathematics has none."""

_LIGATURES = re.compile(r"([-,'])(?=\1)")
_PIECES = re.compile(r'`([^`]+)`|"([^"]*)"|(.)', re.S)

FALLBACK = r"\providecommand{\unicodechar}{\csname @secondoftwo\endcsname}"
r"""Defines `\unicodechar{NUMBER}{U+CODE}` for letters that pdfLaTeX has no font for: it shows the second argument. Who
sets another engine and font defines it before as `\symbol{#1}`."""


def escape_latex(text: str) -> str:
    """Write plain text in ASCII for LaTeX.

    Words in backticks are set in typewriter, and pairs of straight quotation marks as opening and closing ones. Accents
    and Greek letters are commands. Every other letter is a `\\unicodechar`, which needs `FALLBACK` before.
    """
    text = _LIGATURES.sub("\\1\0", unicodedata.normalize("NFC", text.replace("\0", " ")))
    return "".join(_piece(match) for match in _PIECES.finditer(text))


def printed(text: str) -> str:
    """Return about what is printed of a text: letters without a font are numbers, between which a line can break."""
    unset = {character for character in text if r"\unicodechar" in _character(character)}
    return "".join(f"U+{ord(character):04X} " if character in unset else character for character in text)


def _piece(match: re.Match[str]) -> str:
    code, quoted, character = match.groups()
    if code is not None:
        return rf"\texttt{{{escape_latex(code)}}}"
    if quoted is not None:
        return rf"\textquotedblleft{{}}{escape_latex(quoted)}\textquotedblright{{}}"
    return _character(character)


def _character(character: str) -> str:
    if character in _SIGNS:
        return _SIGNS[character]
    if character == "\0":  # Between signs that a font would join: two hyphens stay two hyphens.
        return "{}"
    if character.isspace() or unicodedata.category(character) == "Cc":
        return " "
    if character.isascii():
        return character
    return _greek(character) or _accented(character) or _raised(character) or _number(character)


def _greek(letter: str) -> str:
    name = _GREEK.get(letter, "")
    return rf"$\{name}$" if len(name) > 1 else name


def _accented(character: str) -> str:
    base, *marks = list(unicodedata.normalize("NFD", character))
    if not marks:
        return ""
    letter = {"i": r"\i{}", "j": r"\j{}"}.get(base) or _character(base)
    mathematics = letter.startswith("$")
    commands = [_ACCENTS.get(mark, ("", ""))[mathematics] for mark in marks]
    if not all(commands) or letter.startswith(r"\unicodechar"):
        return ""
    letter = letter.strip("$")
    for command in commands:
        letter = rf"\{command}{{{letter}}}"
    return f"${letter}$" if mathematics else letter


def _raised(character: str) -> str:
    kind, _, plain = unicodedata.decomposition(character).partition("> ")
    command = {"<super": "textsuperscript", "<sub": "textsubscript"}.get(kind)
    return rf"\{command}{{{''.join(_character(chr(int(code, 16))) for code in plain.split())}}}" if command else ""


def _number(character: str) -> str:
    return rf"\unicodechar{{{ord(character)}}}{{U+{ord(character):04X} }}"
