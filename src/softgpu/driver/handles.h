// SPDX-License-Identifier: Apache-2.0
//
// Handles. What an application holds (CUcontext, CUstream, …) is the address
// of a slot in one static table, never of an object: so any value it passes
// can be checked without touching memory that may not be there, and a stale
// handle is an error and not a crash.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace sonde::softgpu::driver {

enum class Type : uint32_t {
  none = 0,
  context,
  stream,
  event,
  module,
  function,
  library,
  kernel,
  link,
  graph,
  graphNode,
  graphExec,
  pool,
  array,
  physicalMemory,
  userObject,
  mipmappedArray,
  greenContext,
  resourceDescriptor,
  textureReference,
};

class Object {
 public:
  explicit Object(Type type) : type_(type) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  Type type() const { return type_; }
  void* handle() const { return handle_; }
  // What its handle stands for where an object of another type is asked for. Lives as long as this one.
  virtual Object* alias(Type) const { return nullptr; }
  void ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  friend class HandleTable;
  const Type type_;
  std::atomic<uint32_t> references_{0};
  void* handle_ = nullptr;
};

// A counted reference to an Object.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->ref();
  }
  static Ref adopt(T* object) {
    Ref r;
    r.object_ = object;
    return r;
  }
  Ref(const Ref& o) : Ref(o.object_) {}
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->unref();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& o) const { return object_ == o.object_; }
  void reset() { *this = Ref(); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

// Thread-safe. The table holds a reference until `retire`.
class HandleTable {
 public:
  // nullptr: no slot is left.
  static void* publish(Object* object);
  // Takes the object out: its handle is invalid from here on. False when it
  // was out already.
  static bool retire(Object* object);
  template <class T>
  static Ref<T> find(const void* handle) {
    return Ref<T>::adopt(static_cast<T*>(findRaw(handle, T::kType)));
  }
  // For `none` any type will do.
  static Object* findRaw(const void* handle, Type type);
  static Type typeOf(const void* handle);
};

}  // namespace sonde::softgpu::driver
