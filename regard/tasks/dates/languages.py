"""The languages, and how each writes a day, a month and a year in an unusual order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """A language by its CLDR code. Day, month and year are CLDR patterns."""

    code: str
    name: str
    day: str = "d"
    month: str = "MMMM"
    year: str = "y"
    separator: str = " "
    """Between them."""

    zero: str = ""
    """Its native digit 0, if dates are written in native digits."""


_ALL = (
    Language("ar", "Arabic", zero="\u0660"),
    Language("bg", "Bulgarian", year="y 'г'."),
    Language("bn", "Bengali", zero="\u09e6"),
    Language("cs", "Czech", day="d."),
    Language("da", "Danish", day="d."),
    Language("de", "German", day="d."),
    Language("el", "Greek"),
    Language("en", "English"),
    Language("es", "Spanish"),
    Language("et", "Estonian", day="d."),
    Language("fa", "Persian", zero="\u06f0"),
    Language("fi", "Finnish", day="d."),
    Language("fr", "French"),
    Language("he", "Hebrew", month="בMMMM"),
    Language("hi", "Hindi", zero="\u0966"),
    # The dots are needed: "listopada" is October here and November in Polish.
    Language("hr", "Croatian", day="d.", year="y."),
    Language("hu", "Hungarian", day="d.", year="y."),
    Language("hy", "Armenian", year="y թ."),
    Language("id", "Indonesian"),
    Language("it", "Italian"),
    Language("ja", "Japanese", day="d日", month="M月", year="y年", separator=""),
    Language("ka", "Georgian"),
    Language("ko", "Korean", day="d일", year="y년"),
    Language("lt", "Lithuanian", day="d 'd'.", year="y 'm'."),
    Language("lv", "Latvian", day="d.", year="y. 'gada'"),
    Language("mk", "Macedonian", year="y 'г'."),
    Language("nb", "Norwegian", day="d."),
    Language("nl", "Dutch"),
    Language("pl", "Polish"),
    Language("pt", "Portuguese"),
    Language("ro", "Romanian"),
    Language("ru", "Russian", year="y 'г'."),
    Language("sl", "Slovenian", day="d."),
    Language("sr", "Serbian", day="d.", year="y."),
    Language("sv", "Swedish"),
    Language("th", "Thai", zero="\u0e50"),
    Language("tr", "Turkish"),
    Language("uk", "Ukrainian", year="y 'р'."),
    Language("vi", "Vietnamese", day="'ngày' d", year="'năm' y"),
    Language("zh", "Chinese", day="d日", month="M月", year="y年", separator=""),
)

LANGUAGES = {language.code: language for language in _ALL}
"""By code."""
