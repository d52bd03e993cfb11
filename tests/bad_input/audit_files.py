"""Tables that cannot be audited: encodings, shapes, types, labels, columns and sides."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pandas as pd

from bad_input.cases import AUDIT, PREDICTED, A, B, P, Q, case, text, with_cell

TEXT = text(A)
LINES = TEXT.splitlines(keepends=True)
PIPED = AUDIT.replace("a.csv", "a.csv.gz")
ONE_CLASS = A.assign(y="yes")


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


READING = [
    case("utf-16", AUDIT, "'a.csv'", "UTF-8", files={"a.csv": TEXT.encode("utf-16")}),
    case("utf-16 of the others", AUDIT, "'b.csv'", "UTF-8", files={"b.csv": TEXT.encode("utf-16")}),
    case(
        "latin-1", AUDIT, "'a.csv'", "UTF-8",
        files={"a.csv": TEXT.replace("here", "café").encode("latin-1")},
    ),
    case(
        "latin-1 in the header", AUDIT, "'a.csv'", "UTF-8",
        files={"a.csv": TEXT.replace("town", "région").encode("latin-1")},
    ),
    case("a nul byte in a name", AUDIT, "no column 'town'",
         files={"a.csv": TEXT.replace("town", "to\0wn", 1)}),
    case("only nul bytes", AUDIT, "no column 'y'", files={"a.csv": bytes(1000)}),
    case("a picture", AUDIT, "'a.csv'", files={"a.csv": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 9}),
    case("empty", AUDIT, "'a.csv'", files={"a.csv": b""}),
    case("white space", AUDIT, "'a.csv'", files={"a.csv": "\n  \n\n"}),
    case("a header alone", AUDIT, "members are empty", files={"a.csv": LINES[0]}),
    case("a header alone of the others", AUDIT, "nonmembers are empty", files={"b.csv": LINES[0]}),
    case("no file", f"{AUDIT} --members gone.csv", "gone.csv", "No such file"),
    case("a folder", AUDIT, "a.csv", "directory", files={"a.csv": None}),
    case("a dangling link", AUDIT, "a.csv", "No such file", files={"a.csv": dangling}),
    case("a device without an end", f"{AUDIT} --members /dev/zero", "'/dev/zero'"),
    case("a device without a byte", f"{AUDIT} --members /dev/null", "'/dev/null'"),
    case("a name with a line break", f"{AUDIT} --members 'two\nlines.csv'", "lines.csv"),
    case("an open quote", AUDIT, "'a.csv'", files={"a.csv": TEXT.replace(",here", ',"here', 1)}),
    case(
        "a row that is longer", AUDIT, "'a.csv'", "line 5",
        files={"a.csv": "".join([*LINES[:4], "1,2,here,4,yes,6\n", *LINES[4:]])},
    ),
    case(
        "a first row that is longer", AUDIT, "'a.csv'", "more cells than the header",
        files={"a.csv": "".join([LINES[0], "1,2,here,4,yes,6\n", *LINES[1:]])},
    ),
    case(
        "a row that is shorter", AUDIT, "Line 5 of 'a.csv' has 2 of the header's 5 cells",
        files={"a.csv": "".join([*LINES[:4], "1,2\n", *LINES[4:]])},
    ),
    case(
        "a row without its last cell", AUDIT, "Line 3 of 'a.csv' has 4 of the header's 5 cells",
        files={"a.csv": text(A[["y", "x", "z", "town", "person"]]).replace(",there,2\n", ",there\n")
               .replace(",here,2\n", ",here\n")},
    ),
    case(
        "predictions in a short row", PREDICTED, "Line 2 of 'q.csv' has 3 of the header's 4 cells",
        files={"q.csv": text(Q).replace(",here\n", "\n", 1).replace(",there\n", "\n", 1)},
    ),
    case(
        "two columns of one name", AUDIT, "'a.csv'", "2 columns named 'x'",
        files={"a.csv": TEXT.replace("x,z", "x,x")},
    ),
    case(
        "a column without a name", AUDIT, "'a.csv'", "Column 0", "no name",
        files={"a.csv": A.to_csv()},
    ),
    case(
        "a header of 16 million letters", AUDIT, "'a.csv'", "16,777,216",
        files={"a.csv": b"x" * 2**24 + b",y\n1,yes\n"},
    ),
    case(
        "semicolons", AUDIT, "a.csv", "separated by semicolons",
        files={"a.csv": A.to_csv(sep=";", index=False), "b.csv": B.to_csv(sep=";", index=False)},
    ),
    case(
        "not packed", PIPED, "a.csv.gz", "gzip", files={"a.csv.gz": TEXT},
    ),
    case(
        "packed and cut short", PIPED, "a.csv.gz",
        files={"a.csv.gz": gzip.compress(TEXT.encode())[:-200]},
    ),
    case(
        "packed and damaged", AUDIT.replace("a.csv", "a.csv.xz"), "a.csv.xz",
        files={"a.csv.xz": lzma.compress(TEXT.encode())[:-50]},
    ),
    case("packed under a plain name", AUDIT, "'a.csv'",
         files={"a.csv": gzip.compress(TEXT.encode())}),
]  # fmt: skip

LABELS = [
    case("no column of labels", f"{AUDIT} --label yy", "no column 'yy'", "x, z, town"),
    case("no label at all", AUDIT, "label of the members is missing in row 0",
         files={"a.csv": A.assign(y="")}),
    case("a missing label", AUDIT, "label of the nonmembers is missing in row 7",
         files={"b.csv": with_cell(B, 7, "y", "")}),
    case("an infinite label", AUDIT.replace("logistic", "ridge"),
         "label of the members is infinite in row 3",
         files={"a.csv": with_cell(A.assign(y=A["x"]), 3, "y", "1e999"),
                "b.csv": B.assign(y=B["x"])}),
    case("members of one class", AUDIT, "60 members", "only one class: 'yes'",
         files={"a.csv": ONE_CLASS}),
    case("others of one class", AUDIT, "60 nonmembers have the label 'yes'",
         files={"b.csv": B.assign(y="yes")}),
    case("a label the model never saw", AUDIT, "'perhaps'", "row 11", "nonmembers",
         files={"b.csv": with_cell(B, 11, "y", "perhaps")}),
    case("numbers and texts", AUDIT, "nonmembers are like 1", "'no'",
         files={"b.csv": B.assign(y=1)}),
    case("labels with fractions for classes", AUDIT, "logistic",
         files={"a.csv": A.assign(y=A["x"]), "b.csv": B.assign(y=B["x"])}),
    case("texts for numbers", AUDIT.replace("logistic", "ridge"), "'ridge'"),
    case("labels of forty digits", AUDIT, "'1000", "row 0", "nonmembers",
         files={"a.csv": A.assign(y=[f"{10**39 + row % 2}" for row in range(60)]),
                "b.csv": B.assign(y=[f"{10**38 + row % 2}" for row in range(60)])}),
    case("huge whole labels", AUDIT, "18446744073709551615",
         files={"a.csv": A.assign(y=[2**64 - 1 - row % 2 for row in range(60)]),
                "b.csv": B.assign(y=[row % 2 for row in range(60)])}),
    case("the label alone", AUDIT, "members are empty",
         files={"a.csv": A[["y"]], "b.csv": B[["y"]]}),
]  # fmt: skip

COLUMNS = [
    case("an infinite feature", AUDIT, "Column 'x' of the members is infinite in row 5",
         files={"a.csv": with_cell(A, 5, "x", "inf")}),
    case("an infinite feature of the others", AUDIT, "Column 'z' of the nonmembers", "row 0",
         files={"b.csv": with_cell(B, 0, "z", "-1e400")}),
    case("a column that one side has", AUDIT, "nonmembers have no column 'town'",
         files={"b.csv": B.drop(columns="town")}),
    case("no such group", f"{AUDIT} --groups town,county", "no column 'county'"),
    case("groups without names", f"{AUDIT} --groups ''", "--groups", "''"),
    case("a group of as many values as records", f"{AUDIT} --groups person", "'person'", "120",
         files={"a.csv": pd.concat([A, B]), "b.csv": B.assign(x=B["x"] + 1)}),
    case("no such person", f"{AUDIT} --unit who", "no column 'who'"),
    case("a missing person", f"{AUDIT} --unit person", "unit of the members is missing in row 2",
         files={"a.csv": with_cell(A, 2, "person", "")}),
    case("persons of two kinds", f"{AUDIT} --unit person", "unit", "0", "'b'",
         files={"b.csv": B.assign(person="b")}),
]  # fmt: skip

SAVED = [
    case("predictions below 0", PREDICTED, "members", "row 4", "-0.5, 1.5",
         files={"p.csv": with_cell(with_cell(P, 4, "no", -0.5), 4, "yes", 1.5)}),
    case("predictions that do not sum to 1", PREDICTED, "nonmembers", "row 2", "0.9, 0.9",
         files={"q.csv": with_cell(with_cell(Q, 2, "no", 0.9), 2, "yes", 0.9)}),
    case("percentages", PREDICTED, "divide percentages by 100",
         files={"p.csv": P.assign(yes=P["yes"] * 100, no=P["no"] * 100)}),
    case("logits", PREDICTED, "softmax",
         files={"p.csv": P.assign(yes=np.log(P["yes"]), no=np.log(P["no"]))}),
    case("a missing probability", PREDICTED, "members", "row 7",
         files={"p.csv": with_cell(P, 7, "no", "")}),
    case("an infinite probability", PREDICTED, "'no' of the nonmembers is infinite in row 8",
         files={"q.csv": with_cell(Q, 8, "no", "inf")}),
    case("a text for a probability", PREDICTED, "Column 'no' of the members", "row 3", "'much'",
         files={"p.csv": with_cell(P, 3, "no", "much")}),
    case("one class of predictions", PREDICTED, "members' predictions", "label",
         files={"p.csv": P[["yes", "label"]]}),
    case("classes of one side", PREDICTED, "'maybe'", files={"q.csv": Q.assign(maybe=0.0)}),
    case("classes that the other side lacks", PREDICTED, "no column 'maybe'",
         files={"p.csv": P.assign(maybe=0.0)}),
    case("predictions without labels", PREDICTED, "no column 'label'",
         files={"p.csv": P.drop(columns="label")}),
    case("a label of no class", PREDICTED, "'perhaps'", "row 5",
         files={"q.csv": with_cell(Q, 5, "label", "perhaps")}),
    case("predictions without a label", PREDICTED, "label of the members is missing in row 6",
         files={"p.csv": with_cell(P, 6, "label", "")}),
    case("predictions of one class", PREDICTED, "60 members have the label 'no'",
         files={"p.csv": P.assign(label="no")}),
    case("predictions without that group", f"{PREDICTED} --groups county", "no column 'county'"),
    case("empty predictions", PREDICTED, "'q.csv'", files={"q.csv": ""}),
    case("no predictions", f"{PREDICTED} --member-predictions gone.csv", "gone.csv"),
]  # fmt: skip

CASES = [*READING, *LABELS, *COLUMNS, *SAVED]
