#include "text/table.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#include "text/dates.h"

namespace berthline {
namespace {

constexpr double kPowersOfTen[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kMostDigits = 19;  // all numbers with this many digits fit 64 bits
constexpr uint64_t kMostExact = uint64_t{1} << 53;

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint64_t hash_of(std::string_view word) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  // Mixed twice; otherwise words that differ only in their last characters get equal low bits.
  const auto mixed = [](uint64_t hash, uint64_t part) {
    hash = (hash ^ part) * kFactor;
    hash = (hash ^ (hash >> 32)) * kFactor;
    return hash ^ (hash >> 32);
  };
  const char* at = word.data();
  const size_t size = word.size();
  uint64_t hash = size;
  // The last part may overlap the previous one: it is a hash either way, and needs no loop.
  if (size >= 8) {
    for (size_t i = 0; i + 8 < size; i += 8) hash = mixed(hash, load<uint64_t>(at + i));
    return mixed(hash, load<uint64_t>(at + size - 8));
  }
  if (size >= 4) {
    return mixed(hash, load<uint32_t>(at) | uint64_t{load<uint32_t>(at + size - 4)} << 32);
  }
  uint64_t part = 0;
  for (size_t i = 0; i < size; ++i) part = part << 8 | static_cast<uint8_t>(at[i]);
  return mixed(hash, part);
}

// The positions of separators, quotes and line ends in a text, one after the other.
class Marks {
 public:
  Marks(std::string_view text, char separator, char quote)
      : text_(text), separator_(separator), quote_(quote != 0 ? quote : separator) {
    look();
  }
  // The next position; the size of the text = there is none.
  size_t next() {
    while (bits_ == 0) {
      if (text_.size() - block_ <= kBlock) return text_.size();
      block_ += kBlock;
      look();
    }
    const auto place = static_cast<size_t>(std::countr_zero(bits_));
    bits_ &= bits_ - 1;
    return block_ + place;
  }

 private:
  static constexpr size_t kBlock = 64;

  void look() {
    char rest[kBlock] = {};
    const char* from = text_.data() + block_;
    if (text_.size() - block_ < kBlock) {
      std::memcpy(rest, from, text_.size() - block_);
      from = rest;
    }
    uint8_t is_mark[kBlock];  // compilers vectorise this loop
    for (size_t i = 0; i < kBlock; ++i) {
      is_mark[i] = (from[i] == separator_) | (from[i] == quote_) | (from[i] == '\n');
    }
    bits_ = 0;
    if constexpr (std::endian::native == std::endian::little) {
      // The top of the product has the lowest bits of eight bytes side by side.
      for (size_t i = 0; i < kBlock; i += 8) {
        bits_ |= (load<uint64_t>(is_mark + i) * 0x0102040810204080 >> 56) << i;
      }
    } else {
      for (size_t i = 0; i < kBlock; ++i) bits_ |= uint64_t{is_mark[i]} << i;
    }
  }

  std::string_view text_;
  size_t block_ = 0;   // start of the current block,
  uint64_t bits_ = 0;  // and the marks in it that were not returned yet
  char separator_, quote_;
};

bool is_ascii(std::string_view text) {
  uint8_t all = 0;
  for (char each : text) all |= static_cast<uint8_t>(each);
  return all < 0x80;
}

// Reads digits with or without a point and an exponent, and gives the nearest double. False = the
// number is written in another way, or it is one of the few that some compilers' libraries cannot
// read.
bool read_number(std::string_view text, double& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool is_negative = *at == '-';
  at += is_negative;
  uint64_t digits = 0;
  const auto read_digits = [&] {
    const char* const begin = at;
    while (at < end && static_cast<uint8_t>(*at - '0') <= 9) {
      digits = digits * 10 + static_cast<uint64_t>(*at++ - '0');
    }
    return at - begin;
  };
  const int64_t whole = read_digits();
  if (whole == 0) return false;
  int64_t decimals = 0;
  if (at < end && *at == '.') {
    ++at;
    decimals = read_digits();
    if (decimals == 0) return false;
  }
  if (at == end && whole + decimals <= kMostDigits && (decimals == 0 || digits <= kMostExact)) {
    const double value = static_cast<double>(digits) / kPowersOfTen[decimals];
    out = is_negative ? -value : value;
    return true;
  }
  if (at < end && *at != 'e' && *at != 'E') return false;
#ifdef __cpp_lib_to_chars
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
#else
  return false;
#endif
}

}  // namespace

size_t count_of(std::string_view text, char mark) {
  constexpr size_t kBlock = 240;  // fits the byte in which compilers count, sixteen at a time
  size_t count = 0, at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) {
    uint8_t found = 0;
    for (size_t i = 0; i < kBlock; ++i) found += text[at + i] == mark;
    count += found;
  }
  for (; at < text.size(); ++at) count += text[at] == mark;
  return count;
}

uint32_t Words::code_of(std::string_view word) {
  const uint64_t hash = hash_of(word);
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != kFree; slot = (slot + 1) & (slots_.size() - 1)) {
    const uint32_t code = slots_[slot];
    if (hashes_[code] == hash && texts_.at(code) == word) return code;
  }
  if (!is_ascii(word)) {
    is_foreign_ = true;
    return 0;
  }
  const auto code = static_cast<uint32_t>(texts_.size());
  slots_[slot] = code;
  hashes_.push_back(hash);
  texts_.add(word);
  if (texts_.size() * 2 > slots_.size()) grow();
  return code;
}

void Words::grow() {
  slots_.assign(slots_.size() * 4, kFree);
  for (uint32_t code = 0; code < texts_.size(); ++code) {
    size_t slot = hashes_[code] & (slots_.size() - 1);
    while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = code;
  }
}

void Cells::add_rows(size_t count) {
  size += count;
  is_valid.resize((size + 7) / 8, 0xff);
  if (kind == CellKind::kNumber || kind == CellKind::kTime) numbers.resize(size);
  if (kind == CellKind::kWord) codes.resize(size);
}

void Cells::drop_rows(size_t count) {
  const size_t left = size - count;
  for (size_t row = left; row < size; ++row) num_empty -= is_empty(row);
  size = left;
  is_valid.resize((size + 7) / 8);
  if (size % 8 != 0) is_valid.back() |= static_cast<uint8_t>(0xff << size % 8);
  numbers.resize(std::min(numbers.size(), size));
  codes.resize(std::min(codes.size(), size));
  texts.begin.resize(std::min(texts.begin.size(), size + 1));
  texts.characters.resize(static_cast<size_t>(texts.begin.back()));
}

TextTable::TextTable(std::vector<TextColumn> columns, int32_t width, char separator, char quote,
                     std::string comment)
    : columns_(std::move(columns)),
      words_(columns_.size()),
      read_(columns_.size()),
      width_(width),
      separator_(separator),
      quote_(quote),
      comment_(std::move(comment)) {}

bool TextTable::find_cells(std::string_view piece) {
  if (piece.empty() || piece.back() != '\n') return false;
  if (piece.size() > std::numeric_limits<uint32_t>::max()) return false;
  most_rows_ = count_of(piece, '\n');
  spans_.resize(std::max(spans_.size(), most_rows_ * columns_.size()));
  const char* const text = piece.data();
  Marks marks(piece, separator_, quote_);
  size_t row = 0;
  for (size_t at = 0; at < piece.size(); ++row) {
    if (!comment_.empty() && piece.substr(at).starts_with(comment_)) return false;
    size_t column = 0;
    bool is_blank = true;
    for (int32_t place = 0;; ++place) {
      size_t begin = at, stop = at = marks.next();
      if (quote_ != 0 && text[at] == quote_) {
        if (at != begin++) return false;
        do {
          stop = marks.next();
          if (stop == piece.size()) return false;
        } while (text[stop] != quote_);
        at = marks.next();
        if (stop == begin || at != stop + 1 || text[at] == quote_) return false;
      }
      if (column < columns_.size() && columns_[column].place == place) {
        if (begin < stop) {
          if (static_cast<uint8_t>(text[begin]) <= ' ' ||
              static_cast<uint8_t>(text[stop - 1]) <= ' ') {
            return false;
          }
          is_blank = false;
        }
        spans_[column * most_rows_ + row] = {static_cast<uint32_t>(begin),
                                             static_cast<uint32_t>(stop)};
        ++column;
      }
      if (text[at++] == '\n') {
        if (place + 1 != width_) return false;
        break;
      }
    }
    if (is_blank) return false;
  }
  num_rows_ = row;
  return true;
}

// Adds the rows of a piece to cells of one kind; false = a cell has another kind.
bool TextTable::convert(size_t column, const char* text, Cells& out) {
  const size_t first = out.size;
  out.add_rows(num_rows_);
  const auto each = [&](auto&& take) {
    const Span* span = spans_.data() + column * most_rows_;
    for (size_t row = first; row < out.size; ++row, ++span) {
      const std::string_view cell(text + span->begin, text + span->end);
      if (cell.empty()) out.set_empty(row);
      if (!take(row, cell)) return false;
    }
    return true;
  };
  if (out.kind == CellKind::kNumber) {
    return each([&](size_t row, std::string_view cell) {
      return cell.empty() || read_number(cell, out.numbers[row]);
    });
  }
  if (out.kind == CellKind::kTime) {
    const DateForm form(columns_[column].pattern);
    return form.is_known() && each([&](size_t row, std::string_view cell) {
             return cell.empty() || form.read(cell, out.numbers[row]);
           });
  }
  if (out.kind == CellKind::kWord) {
    return each([&](size_t row, std::string_view cell) {
      if (!cell.empty()) out.codes[row] = words_[column].code_of(cell);
      return true;
    });
  }
  return each([&](size_t, std::string_view cell) {
    out.texts.add(cell);
    return true;
  });
}

void TextTable::add_cells(size_t column, std::string_view piece) {
  std::vector<Cells>& read = read_[column];
  for (CellKind kind : {columns_[column].kind, CellKind::kText}) {
    if (read.empty() || read.back().kind != kind) read.emplace_back(kind);
    if (convert(column, piece.data(), read.back())) return;
    read.back().drop_rows(num_rows_);
    if (read.back().size == 0) read.pop_back();
  }
}

bool TextTable::read(std::string_view piece) {
  if (!find_cells(piece)) return false;
  bool is_plain = true;
  size_t column = 0;
  for (; is_plain && column < columns_.size(); ++column) {
    add_cells(column, piece);
    is_plain = !words_[column].take_foreign();
    const Cells& last = read_[column].back();
    if (last.kind == CellKind::kText) {
      const std::vector<char>& all = last.texts.characters;
      const auto begin = last.texts.begin[last.size - num_rows_];
      is_plain = is_ascii({all.data() + begin, all.data() + all.size()});
    }
  }
  if (is_plain) return true;
  while (column > 0) {
    std::vector<Cells>& read = read_[--column];
    read.back().drop_rows(num_rows_);
    if (read.back().size == 0) read.pop_back();
  }
  return false;
}

std::vector<std::vector<Cells>> TextTable::take() {
  return std::exchange(read_, std::vector<std::vector<Cells>>(columns_.size()));
}

}  // namespace berthline
