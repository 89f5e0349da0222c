// A list that has its room from the beginning, so that making it longer or shorter is one store.
#pragma once

#include <cstddef>
#include <vector>

namespace berthline {

template <typename T>
class ShortList {
 public:
  void make_room(size_t most) { values_.resize(most); }
  void clear() { size_ = 0; }
  // Values beyond the old size are left over from before.
  void resize(size_t size) { size_ = size; }
  void push_back(T value) { values_[size_++] = value; }

  size_t size() const { return size_; }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  T operator[](size_t i) const { return values_[i]; }
  T& operator[](size_t i) { return values_[i]; }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }

 private:
  std::vector<T> values_;
  size_t size_ = 0;
};

}  // namespace berthline
