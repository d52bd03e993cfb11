"""Diabetes 130-US hospitals: stays of diabetic patients, several per patient."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leakscope.datasets.catalog import DataFolder, about
from leakscope.datasets.encoding import UNKNOWN, as_features, levels_of, one_hot
from leakscope.datasets.files import read_bytes, reading
from leakscope.errors import InputError
from leakscope.options import one_of, whole_number
from leakscope.records import Features, Records
from leakscope.registry import register

NUMERIC = [
    "time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications",
    "number_outpatient", "number_emergency", "number_inpatient", "number_diagnoses",
]  # fmt: skip
DRUGS = [
    "metformin", "repaglinide", "nateglinide", "chlorpropamide", "glimepiride", "acetohexamide",
    "glipizide", "glyburide", "tolbutamide", "pioglitazone", "rosiglitazone", "acarbose",
    "miglitol", "troglitazone", "tolazamide", "examide", "citoglipton", "insulin",
    "glyburide-metformin", "glipizide-metformin", "glimepiride-pioglitazone",
    "metformin-rosiglitazone", "metformin-pioglitazone",
]  # fmt: skip
# Koh & Liang's choice, which the 127 features of the paper come from: no diagnoses, no codes of how
# a patient was admitted; unknown race is a level, and a drug nobody got is a constant column.
CATEGORICAL = [
    "gender", "race", "age", "discharge_disposition_id", "max_glu_serum", "A1Cresult", *DRUGS,
    "change", "diabetesMed",
]  # fmt: skip
GROUPS = ["race", "gender", "age"]
UNIT = "patient_nbr"
LABEL = "readmitted"
SOON = "<30"

_INTEGERS = [
    *NUMERIC, UNIT, "encounter_id", "admission_type_id", "discharge_disposition_id",
    "admission_source_id",
]  # fmt: skip
_PAPER = "Strack et al. 2014 (BioMed Research International 781670)"


@register("dataset", "hospital", paper=_PAPER)
@register("dataset", "diabetes130", paper=_PAPER)
@about(
    source="https://doi.org/10.24432/C5230J (UCI)",
    license="CC BY 4.0",
    files=("diabetic_data.csv", "diabetic_data.csv.xz"),
    openml=("Diabetes130US", 1),
)
def diabetes130(
    folder: DataFolder,
    *,
    encoding: str = "onehot",
    balanced: bool = True,
    seed: int = 0,
    frame: bool = False,
) -> Records:
    """Diabetes-130, hospital stays of diabetic patients: who is readmitted within 30 days.

    encoding ``onehot``: 127 numbers, as in Shokri, Strobel & Zick (2021, appendix B.5): 8 counts as
    they are and 31 categories as indicators, those of two values as one; the label is 1 for
    ``<30``. ``table``: the 47 columns as they are, unknown values as ``?``, and the labels ``<30``
    and ``not <30``. balanced: all 11,357 readmitted within 30 days and as many of the others, drawn
    by the seed; otherwise all 101,766. frame: features as a DataFrame with names. Groups: ``race``,
    ``gender``, ``age``. Unit: the patient.
    """
    one_of("encoding", encoding, ["onehot", "table"])
    whole_number("seed", seed, 0)
    table = _read_table(folder)
    # Levels come from everybody, so that the columns do not depend on who was drawn.
    levels = levels_of(table, CATEGORICAL)
    soon = (table[LABEL] == SOON).to_numpy()
    if balanced:
        rows = _balanced_rows(soon, seed)
        table, soon = table.iloc[rows], soon[rows]
    X: Features
    if encoding == "onehot":
        indicators, names = one_hot(table, levels)
        numbers = table[NUMERIC].to_numpy(dtype=np.float64)
        X = as_features(np.hstack([numbers, indicators]), [*NUMERIC, *names], frame)
    else:
        X = table.drop(columns=["encounter_id", UNIT, LABEL])
    return Records(
        X=X,
        y=soon.astype(np.int64) if encoding == "onehot" else np.where(soon, SOON, f"not {SOON}"),
        groups={group: table[group].to_numpy(dtype=object) for group in GROUPS},
        unit=table[UNIT].to_numpy(),
        name="hospital records",
    )


def _read_table(folder: DataFolder) -> pd.DataFrame:
    path = folder.find("diabetic_data.csv", "diabetic_data.csv.xz")
    if path is None:
        data, label = folder.fetch()
        return _uniform(data.assign(**{LABEL: label}), "openml.org")
    content = read_bytes(path)
    with reading(path):
        table = pd.read_csv(BytesIO(content), keep_default_na=False, low_memory=False)
        return _uniform(table, str(path))


def _uniform(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """The same table from either origin: whole numbers, and text in which ``?`` is unknown."""
    for column in [*_INTEGERS, *CATEGORICAL, LABEL]:
        if column not in table.columns:
            raise InputError(f"The data of {origin} have no column {column!r}; get them again")
    uniform = {
        str(column): pd.to_numeric(table[column].astype(object)).astype(np.int64)
        if column in _INTEGERS
        else table[column].astype(object).where(table[column].notna(), UNKNOWN).astype(str)
        for column in table.columns
    }
    return pd.DataFrame(uniform)


def _balanced_rows(positive: NDArray[np.bool_], seed: int) -> NDArray[np.intp]:
    """All rows of the smaller class and as many of the larger, in the order of the file."""
    classes = sorted((np.flatnonzero(positive), np.flatnonzero(~positive)), key=len)
    fewer, more = classes
    if len(fewer) == 0:
        raise InputError("The hospital records have one class only; use balanced=False")
    drawn = np.random.default_rng(seed).choice(more, size=len(fewer), replace=False)
    return np.sort(np.concatenate([fewer, drawn]))
