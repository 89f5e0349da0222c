// Dates as text, and the seconds since 1970 they stand for; see traces/reading/dates.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berthline {

// A form of dates such as %Y-%m-%d %H:%M:%S, with or without a fraction (%.f) and a zone (%z).
class DateForm {
 public:
  explicit DateForm(const std::string& pattern) {
    std::string_view rest = pattern;
    char* const gaps[] = {&after_year_, &after_month_, &after_day_};
    for (int i = 0; i < 3; ++i) {
      if (rest.size() < 3 || rest[0] != '%' || rest[1] != "Ymd"[i] || rest[2] == '%') return;
      *gaps[i] = rest[2];
      rest.remove_prefix(3);
    }
    if (!take(rest, "%H:%M:%S")) return;
    has_fraction_ = take(rest, "%.f");
    has_zone_ = take(rest, "%z") || take(rest, "%:z") || take(rest, "%#z");
    is_known_ = rest.empty();
  }

  // Whether dates of this form can be read at all.
  bool is_known() const { return is_known_; }

  // Reads a date; without a zone, it is in UTC. False = the text is not such a date, or is written
  // less strictly.
  bool read(std::string_view text, double& seconds) const {
    if (text.size() < kPlainSize) return false;
    const char* at = text.data();
    if (at[4] != after_year_ || at[7] != after_month_ || at[10] != after_day_ || at[13] != ':' ||
        at[16] != ':') {
      return false;
    }
    bool good = true;
    const auto two = [&good](const char* from) {
      const auto tens = static_cast<uint8_t>(from[0] - '0');
      const auto ones = static_cast<uint8_t>(from[1] - '0');
      good &= tens <= 9 && ones <= 9;
      return tens * 10 + ones;
    };
    const int year = two(at) * 100 + two(at + 2);
    const int month = two(at + 5), day = two(at + 8);
    const int hour = two(at + 11), minute = two(at + 14), second = two(at + 17);
    good &= year >= 1 && month >= 1 && month <= 12 && day >= 1 && hour < 24 && minute < 60 &&
            second < 60;
    if (!good || day > days_in(year, month)) return false;
    int64_t whole = days_since_1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    int64_t micros = 0;
    text.remove_prefix(kPlainSize);
    if (has_fraction_ && !read_fraction(text, micros)) return false;
    if (has_zone_ && !read_zone(text, whole)) return false;
    if (!text.empty()) return false;
    // Computed from microseconds, because polars stores dates in microseconds.
    seconds = micros == 0 ? static_cast<double>(whole)
                          : static_cast<double>(whole * 1'000'000 + micros) / 1e6;
    return true;
  }

 private:
  static constexpr size_t kPlainSize = 19;

  static bool take(std::string_view& text, std::string_view start) {
    if (!text.starts_with(start)) return false;
    text.remove_prefix(start.size());
    return true;
  }
  static bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
  static int days_in(int year, int month) {
    if (month == 2) return is_leap(year) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  }
  static int64_t days_since_1970(int year, int month, int day) {
    constexpr int kDaysBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const int past = year - 1;
    const int leap_days = past / 4 - past / 100 + past / 400 + (month > 2 && is_leap(year));
    return int64_t{past} * 365 + leap_days + kDaysBefore[month - 1] + day - 1 - 719162;
  }
  // Up to six digits after a point, if there is one.
  static bool read_fraction(std::string_view& text, int64_t& micros) {
    if (!take(text, ".")) return true;
    int64_t unit = 1'000'000;
    while (!text.empty() && static_cast<uint8_t>(text[0] - '0') <= 9) {
      if (unit == 1) return false;
      unit /= 10;
      micros += unit * (text[0] - '0');
      text.remove_prefix(1);
    }
    return unit < 1'000'000;
  }
  // +08:00 or +0800.
  static bool read_zone(std::string_view& text, int64_t& whole) {
    char digits[4];
    const bool has_colon = text.size() == 6 && text[3] == ':';
    if ((!has_colon && text.size() != 5) || (text[0] != '+' && text[0] != '-')) return false;
    for (size_t i = 0; i < 4; ++i) {
      digits[i] = static_cast<char>(text[1 + i + (has_colon && i > 1)] - '0');
      if (static_cast<uint8_t>(digits[i]) > 9) return false;
    }
    const int hours = digits[0] * 10 + digits[1], minutes = digits[2] * 10 + digits[3];
    if (hours > 23 || minutes > 59) return false;
    const int64_t east = hours * 3600 + minutes * 60;
    whole -= text[0] == '-' ? -east : east;
    text = {};
    return true;
  }

  char after_year_ = 0, after_month_ = 0, after_day_ = 0;
  bool has_fraction_ = false, has_zone_ = false, is_known_ = false;
};

}  // namespace berthline
