// SPDX-License-Identifier: Apache-2.0
//
// A callable passed down by reference: no allocation, valid during the call.
#pragma once

#include <utility>

namespace sonde::platform::nvidia {

template <class Signature>
class FunctionRef;

template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
  FunctionRef(F& callable)  // NOLINT: meant to convert
      : object_(&callable), call_([](void* object, A... a) -> R {
          return static_cast<R>((*static_cast<F*>(object))(std::forward<A>(a)...));
        }) {}
  R operator()(A... a) const { return call_(object_, std::forward<A>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

}  // namespace sonde::platform::nvidia
