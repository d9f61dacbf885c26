"""House style of pages, help texts, docstrings, scripts: plain words, short sentences, British spelling."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "zoo/README.md")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MODULES = sorted(
    file
    for part in ("src", "benchmarks", "zoo", "tests")
    for file in (ROOT / part).rglob("*.py")
    if file != Path(__file__)  # it has the words
)
SCRIPTS = sorted((ROOT / "src").rglob("*.js"))
LONGEST_SENTENCE = 35  # words

# Words that readers stumble over, and what to write instead.
WORDS = {
    r"anew": "again",
    r"beside": "next to, besides",
    r"mend(?:s|ed|ing)?": "fix",
    r"told": "informed, distinguished, passed",
    r"kin": "kind, variant",
    r"bears?": "has",
    r"nobody": "no one, no process",
    r"by our sum": "an estimated",
    r"as chance has it": "at random",
    r"at length": "in full, for long",
    r"keeps? its company": "keeps its population",
    r"what is kept": "name the files",
}
# Words of pages only: in code they are needed now and then.
PAGE_WORDS = {
    r"go(?:es)? on": "continue, resume",
    r"says? so": "state what is said",
    r"(?:come|comes) apart": "separate",
    r"among its": "name the set",
    r"by turns": "alternately",
    r"one's own": "your own",
}
# American spelling, and the British one.
SPELLING = {
    r"colou?rize\w*|colors?|colored": "colour",
    r"gr[a]ys?": "grey",
    r"behaviors?": "behaviour",
    r"neighbors?": "neighbour",
    r"cent(?:er|ers|ered)": "centre",
    r"label(?:ed|ing)": "labelled, labelling",
    r"model(?:ed|ing)": "modelled, modelling",
    r"analyz\w+": "analyse",
    r"(?:normal|optim|regular|initial|visual|standard|summar|recogn|minim|maxim|organ|quant)iz\w+": "-ise",
    r"artifacts?": "artefact",
}
# Names that have such a word.
NAMES = re.compile(r"pictures as artifacts|[Ll]atent[ _][Qq]uantization")

FENCED = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
NOT_PROSE = re.compile(
    r"<!--.*?-->"  # comments
    r"|\$\$.*?\$\$|\$[^$\n]+\$"  # formulas
    r"|<https?:[^>]*>",  # addresses
    re.DOTALL,
)
CODE = re.compile(r"(`+)[^`]+\1")
TITLE = re.compile(r"(?<!\*)\*[^*|]+\*(?!\*)|\"[A-Z][^\"]+\"")  # titles of papers are quoted as they are
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
REFERENCE = re.compile(r"^\s*\[\d+\] .*?(?=^\s*\[\d+\] |^\s*$|\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^\s*(>>>|\.\.\.) .*$", re.MULTILINE)
BIBTEX = re.compile(r"@\w+\{.*", re.DOTALL)
NAMES_ONLY = re.compile(r"(X,? ?)+")
QUOTED_TITLE = re.compile(r'"[A-Z][^"]+"')
NEW_BLOCK = re.compile(r"#+ |[-*:] |\d+\. |\[\d+\] ")
SENTENCE_END = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z`\"(\[*\d])")


def plain(text: str) -> str:
    """Text without code, formulas, addresses and titles."""
    text = NOT_PROSE.sub(" X ", FENCED.sub("\n\n", text))
    return LINK.sub(r"\1", CODE.sub("X", text))


def sentences(text: str) -> Iterator[str]:
    """The sentences of paragraphs, items of lists and cells of tables."""
    block: list[str] = []
    for line in [*plain(text).splitlines(), ""]:
        stripped = line.strip()
        if not stripped or NEW_BLOCK.match(stripped) or stripped.startswith("|"):
            yield from SENTENCE_END.split(" ".join(block))
            block = []
        if stripped.startswith("|"):
            for cell in stripped.strip("|").split("|"):
                yield from SENTENCE_END.split(cell.strip())
        elif stripped:
            block.append(stripped)


def misused(text: str, words: dict[str, str]) -> Iterator[str]:
    """Words that the house style does not use, with their neighbourhood and a better word."""
    if not any_of(tuple(words)).search(text):
        return
    text = " ".join(NAMES.sub("X", TITLE.sub("X", text)).split())
    for word, better in words.items():
        for match in any_of((word,)).finditer(text):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            yield f'"{match[0]}" in "{around}": use {better}'


@cache
def any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for several words."""
    parts = "|".join(words).replace(" ", r"\s+")
    return re.compile(rf"\b(?:{parts})\b", re.IGNORECASE)


def problems_of_module(path: Path) -> Iterator[str]:
    """What the house style has against docstrings, help texts and messages; examples are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            text = EXAMPLE.sub("", REFERENCE.sub("", BIBTEX.sub("", node.value)))
            words = WORDS | SPELLING if id(node) in docstrings else WORDS
            for problem in misused(CODE.sub("X", text), words):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {problem}"


def comments_of(script: str) -> str:
    """The comments of a script in JavaScript, a paragraph each; lines that only have a comment are joined."""
    text = ""
    for line in script.splitlines():
        code, _, comment = line.partition("// ")
        text += f"\n{comment}\n\n" if code.strip() else f"{comment}\n"
    return text


def problems_of_page(text: str) -> list[str]:
    """What the house style has against a page."""
    found = list(misused(plain(text), WORDS | PAGE_WORDS | SPELLING))
    for sentence in sentences(text):
        length = len(QUOTED_TITLE.sub("X", sentence).split())
        if length > LONGEST_SENTENCE and not NAMES_ONLY.fullmatch(sentence):
            found.append(f"{length} words: {sentence}")
        if re.search(r"\w!(?:\s|$)", sentence):
            found.append(f"exclamation mark: {sentence}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_in_plain_english(page: Path) -> None:
    assert "\n".join(problems_of_page(page.read_text(encoding="utf-8"))) == ""


def test_docstrings_help_texts_and_messages_are_in_plain_english() -> None:
    found = [problem for path in MODULES for problem in problems_of_module(path)]
    assert "\n".join(found) == ""


def test_comments_of_scripts_are_in_plain_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path in SCRIPTS
        for problem in problems_of_page(comments_of(path.read_text(encoding="utf-8")))
    ]
    assert "\n".join(found) == ""


def test_only_the_comments_of_a_script_are_prose() -> None:
    lines = ("// A comment of", "// two lines.", 'const color = "http://localhost"; // an address', "anew();")
    paragraphs = comments_of("\n".join(lines)).split("\n\n")
    assert [part.split() for part in paragraphs if part.strip()] == [
        ["A", "comment", "of", "two", "lines."],
        ["an", "address"],
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("It is written anew.", '"anew"'),
        ("The color of a sprite.", "use colour"),
        ("It works!", "exclamation mark"),
        ("A word " * 18 + "ends.", "37 words"),
        ("| a | " + "word " * 40 + "|", "40 words"),
        ("- An item stands beside another.\n- A second item.", '"beside"'),
    ],
)
def test_a_departure_from_the_style_is_found(text: str, problem: str) -> None:
    assert any(problem in found for found in problems_of_page(text))


@pytest.mark.parametrize(
    "text",
    [
        "Run `mend()` and read *Color is not a label!* first.",
        "```python\ncolor = anew\n```\n",
        "A sentence of a few words. " * 20,
        "See [the page](beside.md).",
    ],
)
def test_code_titles_and_addresses_are_not_prose(text: str) -> None:
    assert problems_of_page(text) == []
