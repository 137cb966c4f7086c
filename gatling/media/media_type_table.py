#!/usr/bin/python3
"""media_type_table.py DB.JSON > media_type_table.h

Makes the table of media types from that of the npm package mime-db, which has IANA's list and those of Apache and nginx.
tests/test_media_types.py compares what is committed with the package.
"""

import json
import sys

# Whose word counts where several types have the same extension.
SOURCES = ["iana", "apache", "nginx", None]

# What differs from the list, or is not in it.
OWN = {
    # what browsers and players take
    "audio/ac3": "ac3",
    "audio/flac": "flac",  # RFC 9639
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/x-scpls": "pls",
    "image/jpeg": "jfif",
    "text/javascript": "cjs js mjs",  # RFC 9239
    "text/vcard": "vcard vcf",  # RFC 6350
    "video/matroska": "mkv",  # RFC 9559
    "video/mp4": "m4v mp4 mpg4",
    "video/mp2t": "mts",
    # of two that IANA has, the one that these files mostly are
    "application/rtf": "rtf",
    "application/vnd.ms-project": "mpp",
    "application/xml": "xml",  # clients of RFC 3023 take text/xml to be US-ASCII
    "application/xslt+xml": "xsl",
    "application/mathml+xml": "mml",
    "video/3gpp": "3gpp",
    # packages and archives, which are to be saved
    "application/gzip": "tgz",
    "application/octet-stream": "br run",  # .run is a script followed by a program
    "application/vnd.debian.binary-package": "deb udeb",
    "application/x-mobipocket-ebook": "prc",
    "application/x-rpm": "rpm",
    "application/zstd": "zst",
    # registered, or in use on sites, but not in the list
    "application/cbor": "cbor",
    "application/fits": "fits",
    "application/geopackage+sqlite3": "gpkg",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.sqlite3": "sqlite sqlite3",
    "application/x-pem-file": "pem",
    "application/yaml": "yaml yml",  # RFC 9512
    "text/css": "css",
    # Source text is shown: browsers save other types of text, also text/markdown (RFC 7763).
    "text/plain": "asc asm bat c cc coffee conf cpp csh cxx dic diff f f77 f90 for h hbs hh hpp ini jade java jsx latex "
    "less litcoffee log lua markdown md mdx mkd nfo p pas patch pde php pl pm py rb rs rst sass scss sh sieve siv slim slm "
    "sql srt styl stylus tcl tex texi texinfo toml txt yang",
}

# Names that mean something else on sites than in the list: the content decides.
UNKNOWN = (
    "ac application box book buffer car cat cil class cmp com deploy dis dist distz dna dot dump elc exp ext frame "
    "imp in install its jam key les lrf maker man me ms mag org pml pre prf pub rep res s sc scm see sls sm spot src st "
    "std str sub t tk tr tra vis wg"
).split()


def table(db):
    """Returns the media type of each extension."""
    own = {extension: kind for kind, extensions in OWN.items() for extension in extensions.split()}
    candidates = {}
    for kind, entry in db.items():
        for extension in entry.get("extensions", ()):
            candidates.setdefault(extension, []).append((SOURCES.index(entry.get("source")), kind))
    types = {}
    for extension, found in candidates.items():
        best = sorted(kind for rank, kind in found if rank == min(found)[0])
        if extension in own or extension in UNKNOWN:
            continue
        if min(found)[0] == 0 and len(best) > 1 and len({kind.split("/")[1] for kind in best}) > 1:
            sys.exit(f"{extension} has several types: choose one of {', '.join(best)}")
        types[extension] = best[0]
    return types | own


def header(types):
    """Returns the text of the header."""
    extensions = sorted(types, key=str.encode)
    kinds = sorted(set(types.values()))
    lines = [
        "/* media_type_table.h - made by media_type_table.py: do not edit. Extensions, sorted, and types are NUL-terminated, one",
        " * after the other; an entry has the offsets of both. */",
        "/* clang-format off */",
        "#ifndef GATLING_MEDIA_MEDIA_TYPE_TABLE_H",
        "#define GATLING_MEDIA_MEDIA_TYPE_TABLE_H",
        "",
        "#include <stdint.h>",
        "",
    ]
    offsets = []
    for name, words in (("table_extensions", extensions), ("table_types", kinds)):
        at, offset = 0, {}
        lines.append(f"static const char {name}[] =")
        for word in words:
            offset[word] = at
            at += len(word) + 1
            lines.append(f'\t"{word}\\0"')
        assert at < 65536
        lines[-1] += ";"
        lines.append("")
        offsets.append(offset)
    lines.append("static const struct table_entry {\n\tuint16_t extension, type;\n} table[] = {")
    for extension in extensions:
        lines.append(f"\t{{{offsets[0][extension]}, {offsets[1][types[extension]]}}}, /* {extension} */")
    lines += ["};", "", "#endif", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(header(table(json.load(file))))
