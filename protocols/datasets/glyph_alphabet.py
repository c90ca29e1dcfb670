"""The characters of the dataset ``glyphs``, frozen: which ones are classes, and in which order.

How the table was chosen (``tests/protocols/datasets/test_glyphs.py`` measures it again on every run):

* Candidates were the letters and decimal digits without a Unicode decomposition (so no accented letters and no styled
  copies) of the Latin, Greek, Cyrillic, Armenian and Georgian scripts that at least ``MIN_FACES`` of the sixteen
  typefaces carry: 632 characters, less the tone letters (U+01A7, 01A8, 01BC, 01BD, 0184, 0185), made to look like
  digits, and the saltillo (U+A78B, A78C), a bare stroke.
* Each was drawn upright in each typeface, and every pair was compared within each typeface, as the larger of two
  correlations of ink: once with both ink boxes stretched to one square (discounted where the aspect ratios are more
  than 1.4 apart), which sees ``c`` and ``C``, and once at the font's own scale with the best small shift, which sees
  marks such as a stroke or a descender. The largest value over the typefaces must be below ``MAX_SIMILARITY``, so that
  two letters which coincide in the italics only (``a`` and Latin alpha) count as alike; the mean over the typefaces
  must be below ``MEAN_SIMILARITY``, which takes out the letters that differ by a small mark in every one of them.
* Across typefaces: of the drawings of two characters, at most ``CROSSINGS`` may be nearer (stretched to one square) to
  a drawing of the other character than to every other drawing of its own.
* Walking through the digits, ASCII letters, basic Greek and basic Cyrillic letters, then the rest script by script
  (characters of all sixteen typefaces first), a character was kept if it passed against every one kept before it.
  The others were left out, none merged: the name of a class says what is drawn.
* Last, five that passed but that a person takes for another class once they are warped were left out by hand: nu
  (U+03BD, V), turned open e (U+1D08, the digit three), Khakassian che (U+04CC, Cyrillic che), capital z with swash tail
  (U+2C7F, its lower case) and turned w (U+028D, M).

The most similar pairs of the table have 0.9098 (largest value, U+01F6 and U+040A) and 0.867 (mean, U+01B5 and U+0224).
Half turns and mirror images of each other are different classes: no sample is turned that far, or mirrored.
"""

import hashlib

MIN_FACES = 12
MAX_SIMILARITY = 0.91
MEAN_SIMILARITY = 0.87
CROSSINGS = 1

DIGITS = "0123456789"

LATIN = "ACEHJKLMNPRTUVWXYabdefgkmnprstyz"

LATIN_EXTENDED = "ÆÞæøŊŒƁƈƊƋƑƓƕƢƦƪƱƵƸƺƾǁǂǃǶȜȤȴȸȼɀɔɕɘɚɛɝɢɣɥɧɨɬɭɮɰɽʁʇʎʐʒʔʕʞʠʣʤʦʨʩʫʬʭᴖᴗᴝᴟᵷⱵⱾ"

GREEK = "ΔΞΣΦΨΩαβδζλςφωϗϘϚϞϟϠϡϻ"

CYRILLIC = "ЂЉЊДЖЛЧШЪЫЭЮЯѣѪҒҕҗҙқҳ"

ARMENIAN = "ԲԳԶԷԸԹԻԾԿՀՂՃՆՇՉՊՌՎՔՖխձճնչջփ"

GEORGIAN = "აბგდეზთკლჟრტფყშცჭჯჰჲჳჴჵჶჹ"


def _mixed(character: str) -> bytes:
    return hashlib.sha256(f"U+{ord(character):04X}".encode()).digest()


# The protocol trains on the first half of the class ids and tests on the second. Sorted by script, the test half would
# be other scripts than the training half; sorted by a hash of the code point, both halves hold all of them.
ALPHABET = tuple(sorted(DIGITS + LATIN + LATIN_EXTENDED + GREEK + CYRILLIC + ARMENIAN + GEORGIAN, key=_mixed))
