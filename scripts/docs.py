"""Checks the documentation; see docs.sh.

    docs.py sources     the Markdown files: links, anchors, images, table of contents, first paragraphs, files and tests that they name
    docs.py site BOOK   completes the built site with the files outside docs/src that pages link to, then checks every link in it
"""

import html
import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/src"

problems = []


def problem(path, line, text):
    problems.append(f"{path.relative_to(ROOT)}:{line}: {text}")


# Sources


def sources():
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/README.md")]
    pages = sorted(PAGES.rglob("*.md"))
    files += pages + sorted((ROOT / "tests").rglob("*.md"))
    code = code_of_tests()
    links = sum(check_source(path, code) for path in files)
    check_contents(pages)
    for page in pages:
        if page.name != "SUMMARY.md":
            check_first_paragraph(page)
    print(f"{len(files)} Markdown files, {links} links")


def without_code(text):
    """The text with fenced blocks and inline code blanked out, of the same length, so that lines still count."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"^( *)```.*?^ *```", blank, text, flags=re.S | re.M)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", blank, text)


LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def check_source(path, code):
    text = path.read_text()
    plain = without_code(text)
    line_of = lambda at: text.count("\n", 0, at) + 1
    links = 0
    for match in LINK.finditer(plain):
        links += 1
        check_target(path, line_of(match.start()), match.group(1))
    for match in re.finditer(r"`([^`\n]+)`", re.sub(r"^( *)```.*?^ *```", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S | re.M)):
        name = match.group(1)
        if re.fullmatch(r"(crates|tests|scripts|fuzz|docs)/[\w./-]+", name) and not re.search(r"[A-Z]{3}", name):
            if not (ROOT / name).exists() and not name.startswith("fuzz/corpus"):
                problem(path, line_of(match.start()), f"there is no file {name}")
        # A test's name is a sentence.
        if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+){3,}", name) and len(name) > 25 and path.name == "errata.md" and name not in code:
            problem(path, line_of(match.start()), f"there is no test {name}")
    return links


def code_of_tests():
    """The names of all functions in the workspace's Rust code."""
    names = set()
    for path in (ROOT / "crates").rglob("*.rs"):
        names.update(re.findall(r"\bfn (\w+)", path.read_text()))
    return names


def check_target(path, line, target):
    parts = urlsplit(html.unescape(target))
    if parts.scheme or parts.netloc:
        return
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.is_relative_to(ROOT) or not file.exists():
        problem(path, line, f"broken link {target}: there is no such file")
    elif file.is_dir() and path.is_relative_to(PAGES) and file != ROOT / "docs/examples":
        problem(path, line, f"link {target} is a folder, which the site does not have; link a file in it")
    elif parts.fragment and file.suffix == ".md" and unquote(parts.fragment) not in anchors(file):
        problem(path, line, f"broken link {target}: {file.relative_to(ROOT)} has no heading #{parts.fragment}")


def anchors(path, cache={}):
    if path not in cache:
        found, text = set(), re.sub(r"^( *)```.*?^ *```", "", path.read_text(), flags=re.S | re.M)
        for heading in re.findall(r"^#+ +(.*?)\s*#*$", text, flags=re.M):
            heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
            slug = "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
            number = 0
            while (name := slug + (f"-{number}" if number else "")) in found:
                number += 1
            found.add(name)
        cache[path] = found
    return cache[path]


def check_contents(pages):
    """Each page stands in the table of contents once."""
    summary = PAGES / "SUMMARY.md"
    named = [(PAGES / target).resolve() for target in LINK.findall(summary.read_text())]
    for page in pages:
        if page != summary and named.count(page) != 1:
            problem(page, 1, f"stands {named.count(page)} times in SUMMARY.md")


def check_first_paragraph(page):
    blocks = [block for block in page.read_text().split("\n\n") if block.strip()]
    if not blocks[0].startswith("# "):
        problem(page, 1, "begins without a title")
    elif len(blocks) < 2 or re.match(r"[#>|\-*!`]|\d+\.|    ", blocks[1]):
        problem(page, 3, "has no first paragraph that states what it is for")


# Site


class Page(HTMLParser):
    """The targets and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(value for name, value in attributes.items() if name in ("id", "name") and value)
        for name in ("href", "src"):
            if attributes.get(name) and tag != "base":
                self.targets.append((self.getpos()[0], attributes[name]))


def site(book):
    complete(book)
    pages = {path: Page(path.read_text()) for path in sorted(book.rglob("*.html"))}
    links = 0
    for path, page in pages.items():
        if path.name in ("404.html", "toc.html"):
            continue  # Their addresses start at the site's root.
        for line, target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.is_relative_to(book) or not file.is_file():
                problems.append(f"{path}:{line}: broken link {target}")
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
                problems.append(f"{path}:{line}: {target} has no such anchor")
    print(f"{len(pages)} pages in {book}, {links} links")


def complete(book):
    """Copies what pages link to outside docs/src, and points the links to the copies.

    Files of docs/examples and docs/images stand in folders of these names. Others of the repository stand in `repository`, as text.
    """
    for name in ("examples", "images"):
        shutil.copytree(ROOT / "docs" / name, book / name)
    examples = sorted(path.name for path in (ROOT / "docs/examples").iterdir())
    (book / "examples/index.html").write_text(
        "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Examples</title><h1>Examples</h1><ul>"
        + "".join(f'<li><a href="{html.escape(name)}">{html.escape(name)}</a>' for name in examples)
        + "</ul></html>"
    )
    for path in book.rglob("*.html"):
        source = PAGES / path.relative_to(book).parent
        text = path.read_text()

        def point(match):
            attribute, target = match.group(1), html.unescape(match.group(2))
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or not parts.path.startswith(".."):
                return match.group()
            file = Path(os.path.normpath(source / unquote(parts.path)))
            if file.is_relative_to(PAGES) or not file.is_relative_to(ROOT):
                return match.group()
            if not file.exists() and file.suffix == ".html":
                file = file.with_suffix(".md")  # mdBook takes every .md for a page.
            if file == ROOT / "docs/examples":
                file /= "index.html"
            elif not file.is_file():
                return match.group()
            if file.is_relative_to(ROOT / "docs/examples") or file.is_relative_to(ROOT / "docs/images"):
                copy = book / file.relative_to(ROOT / "docs")
            else:
                copy = book / "repository" / (str(file.relative_to(ROOT)) + ".txt")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            return f'{attribute}="{html.escape(os.path.relpath(copy, path.parent))}"'

        path.write_text(re.sub(r'\b(href|src)="([^"]*)"', point, text))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sources"]:
            sources()
        case ["site", folder]:
            site(Path(folder).resolve())
        case _:
            sys.exit(__doc__)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        sys.exit(1)
