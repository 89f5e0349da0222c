// Columns of a text table, with a fast reader for plain tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berthline {

// How often a character occurs.
size_t count_of(std::string_view text, char mark);

enum class CellKind { kNumber, kTime, kWord, kText };

// A column to read.
struct TextColumn {
  int32_t place;  // index among the cells of a line
  CellKind kind;
  std::string pattern;  // of dates, in strftime's notation
};

// Texts one after another.
struct Texts {
  std::vector<int64_t> begin{0};  // of each text, and the end of the last
  std::vector<char> characters;

  size_t size() const { return begin.size() - 1; }
  std::string_view at(size_t i) const {
    return {characters.data() + begin[i], static_cast<size_t>(begin[i + 1] - begin[i])};
  }
  void add(std::string_view text) {
    characters.insert(characters.end(), text.begin(), text.end());
    begin.push_back(static_cast<int64_t>(characters.size()));
  }
};

// Cells of one column in consecutive rows; one of the three lists is filled.
struct Cells {
  explicit Cells(CellKind kind) : kind(kind) {}

  CellKind kind;  // kText also if cells are not of the requested kind
  size_t size = 0;
  std::vector<uint8_t> is_valid;  // bits; 0 = an empty cell
  int64_t num_empty = 0;
  std::vector<double> numbers;  // kNumber: values; kTime: seconds
  std::vector<uint32_t> codes;  // kWord
  Texts texts;                  // kText

  bool is_empty(size_t row) const { return (is_valid[row / 8] >> row % 8 & 1) == 0; }
  void set_empty(size_t row) {
    is_valid[row / 8] &= static_cast<uint8_t>(~(1u << row % 8));
    ++num_empty;
  }
  // Adds rows, except texts, which are added one by one; or removes the last rows.
  void add_rows(size_t count);
  void drop_rows(size_t count);
};

// Numbers for words, in order of first appearance.
class Words {
 public:
  Words() : slots_(1024, kFree) {}
  uint32_t code_of(std::string_view word);
  // Whether there was a word that is not ASCII since the last call. It is not kept.
  bool take_foreign() { return std::exchange(is_foreign_, false); }
  const Texts& texts() const { return texts_; }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  void grow();

  Texts texts_;
  std::vector<uint64_t> hashes_;
  std::vector<uint32_t> slots_;  // codes; the number of slots is a power of two
  bool is_foreign_ = false;
};

// Reads pieces of a table in which every line has the same number of cells.
class TextTable {
 public:
  // quote 0 = none. Columns are in the order of their places.
  TextTable(std::vector<TextColumn> columns, int32_t width, char separator, char quote,
            std::string comment);
  // Reads a piece of whole lines. False = nothing was read, because the piece is not plain: it has
  // a line with more or fewer cells, a comment, a row without any requested cell, a quote inside a
  // cell, or a requested cell with blanks around it or characters beyond ASCII.
  bool read(std::string_view piece);
  // What was read since the last call: [column], in runs of rows of one kind.
  std::vector<std::vector<Cells>> take();
  // The words for the codes of a column, in all pieces read.
  const Texts& words(size_t column) const { return words_[column].texts(); }

 private:
  struct Span {
    uint32_t begin, end;
  };
  bool find_cells(std::string_view piece);
  void add_cells(size_t column, std::string_view piece);
  bool convert(size_t column, const char* text, Cells& out);

  std::vector<TextColumn> columns_;
  std::vector<Words> words_;              // [column]
  std::vector<std::vector<Cells>> read_;  // [column]
  int32_t width_;
  char separator_, quote_;
  std::string comment_;
  std::vector<Span> spans_;  // [column][row]
  size_t num_rows_ = 0;      // of the piece
  size_t most_rows_ = 0;     // capacity of `spans_`
};

}  // namespace berthline
