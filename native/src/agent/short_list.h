// A list whose memory is allocated once, so that changing its size is one store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

namespace berthline {

template <typename T>
class ShortList {
 public:
  void make_room(size_t most) { values_ = std::make_unique<T[]>(most); }
  // The other list has room for as many.
  void copy(const ShortList& other) {
    size_ = other.size_;
    std::copy_n(other.values_.get(), size_, values_.get());
  }
  void clear() { size_ = 0; }
  // Values beyond the old size are whatever was there before.
  void resize(size_t size) { size_ = size; }
  void push_back(T value) { values_[size_++] = value; }

  size_t size() const { return size_; }
  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }
  T operator[](size_t i) const { return values_[i]; }
  T& operator[](size_t i) { return values_[i]; }
  const T* begin() const { return values_.get(); }
  const T* end() const { return values_.get() + size_; }

 private:
  std::unique_ptr<T[]> values_;
  size_t size_ = 0;
};

}  // namespace berthline
