#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the constants of the device mathematics (needs mpmath).

Polynomials are Chebyshev interpolants, turned into monomials at high precision
and rounded to the type. Run by hand when an approximation changes:
  tools/device_math/make_coefficients.py > include/softgpu/sonde_device_math_tables.h
"""
from mpmath import asin, atan, atanh, cos, erfc, exp, log, loggamma, mp, mpf, pi, sin, sqrt
import mpmath

mp.dps = 70


def fit(function, low, high, degree):
    """Monomial coefficients (lowest first) of the interpolant in Chebyshev nodes."""
    low, high = mpf(low), mpf(high)
    n = degree + 1
    nodes = [cos(pi * (mpf(k) + mpf(1) / 2) / n) for k in range(n)]
    values = [function((high + low) / 2 + (high - low) / 2 * t) for t in nodes]
    cheb = [2 * sum(v * cos(j * pi * (mpf(k) + mpf(1) / 2) / n) for k, v in enumerate(values)) / n for j in range(n)]
    cheb[0] /= 2
    # Chebyshev to monomials in t, then t = (2x - high - low) / (high - low).
    t_polys = [[mpf(1)], [mpf(0), mpf(1)]]
    while len(t_polys) < n:
        a, b = t_polys[-1], t_polys[-2]
        new = [mpf(0)] + [2 * c for c in a]
        for i, c in enumerate(b):
            new[i] -= c
        t_polys.append(new)
    mono = [mpf(0)] * n
    for c, poly in zip(cheb, t_polys):
        for i, p in enumerate(poly):
            mono[i] += c * p
    scale, shift = 2 / (high - low), -(high + low) / (high - low)
    out = [mpf(0)] * n
    power = [mpf(1)]
    for c in mono:
        for i, p in enumerate(power):
            out[i] += c * p
        new = [mpf(0)] * (len(power) + 1)
        for i, p in enumerate(power):
            new[i] += p * shift
            new[i + 1] += p * scale
        power = new
    return out


def emit(name, values, kind):
    if kind == "double":
        text = ", ".join("%.17e" % float(v) for v in values)
    else:
        text = ", ".join("%.9ef" % float(v) for v in values)
    words = ("SONDE_MATH_TABLE %s %s[%d] = {%s};" % (kind, name, len(values), text)).split(" ")
    line = ""
    for word in words:
        if len(line) + len(word) + 1 > 118:
            print(line)
            line = "    " + word
        else:
            line = (line + " " + word) if line else word
    print(line)


def sin_tail(z):
    r = sqrt(abs(z)) if z else mpf("1e-20")
    return (sin(r) / r - 1) / (r * r)


def cos_tail(z):
    r = sqrt(abs(z)) if z else mpf("1e-15")
    return (cos(r) - 1 + r * r / 2) / (r * r) ** 2


def exp_tail(r):
    if abs(r) < mpf("1e-20"):
        return mpf(1) / 2 + r / 6
    return (exp(r) - 1 - r) / (r * r)


def log_tail(z):
    s = sqrt(abs(z)) if z else mpf("1e-8")
    return ((atanh(s) * 2 - 2 * s) / s ** 3 - mpf(2) / 3) / (s * s) if s > mpf("1e-7") else mpf(2) / 5 + mpf(2) / 7 * s * s


def log_tail2(z):
    if z < mpf("1e-9"):
        return mpf(2) / 7 + mpf(2) / 9 * z
    return (log_tail(z) - mpf(2) / 5) / z


def atan_tail(z):
    t = sqrt(abs(z)) if z else mpf("1e-20")
    return (atan(t) / t - 1) / (t * t)


def asin_tail(z):
    t = sqrt(abs(z)) if z else mpf("1e-20")
    return (asin(t) / t - 1) / (t * t)


def erfcx_scaled(q):
    """(1 + 2x) erfcx(x) with q = (x - 4) / (x + 4), x >= 0."""
    x = 4 * (1 + q) / (1 - q)
    if x > 1e6:
        return (1 + 2 * x) / (x * sqrt(pi)) * (1 - 1 / (2 * x * x))
    return (1 + 2 * x) * erfc(x) * exp(x * x)


def erf_tail(z):
    x = sqrt(abs(z)) if z else mpf("1e-20")
    return mpmath.erf(x) / x - 1


def split(value, parts, bits):
    """A constant as a sum of doubles with at most `bits` significant bits each."""
    out = []
    for index in range(parts):
        if value == 0:
            out.append(mpf(0))
            continue
        e = int(mpmath.floor(mpmath.log(abs(value), 2)))
        scale = mpf(2) ** (bits - 1 - e)
        part = mpmath.nint(value * scale) / scale
        out.append(part)
        value -= part
    return out


def main():
    print("/* SPDX-License-Identifier: Apache-2.0")
    print(" *")
    print(" * Constants of the device mathematics. Made by tools/device_math/make_coefficients.py.")
    print(" */")
    quarter = (pi / 4) ** 2 * mpf("1.001")
    for kind, sin_n, cos_n, exp_n, log_n, atan_n, asin_n, bits, tag in (
            ("double", 6, 6, 10, 7, 13, 13, 53, "D"), ("float", 3, 3, 5, 2, 6, 5, 24, "F")):
        emit("kSin" + tag, fit(sin_tail, 0, quarter, sin_n), kind)
        emit("kCos" + tag, fit(cos_tail, 0, quarter, cos_n), kind)
        emit("kExp" + tag, fit(exp_tail, -mpf("0.3470"), mpf("0.3470"), exp_n), kind)
        emit("kLog" + tag, fit(log_tail2, 0, mpf("0.02945"), log_n), kind)
        emit("kAtan" + tag, fit(atan_tail, 0, mpf("0.1717"), atan_n), kind)
        emit("kAsin" + tag, fit(asin_tail, 0, mpf("0.2501"), asin_n), kind)
        emit("kErf" + tag, fit(erf_tail, 0, mpf("1.0"), 13 if tag == "D" else 7), kind)
        emit("kErfcx" + tag, fit(erfcx_scaled, -1, mpf("0.9999"), 24 if tag == "D" else 11), kind)
        emit("kHalfPi" + tag, split(pi / 2, 4, bits), kind)
        emit("kPi" + tag, split(pi, 2, bits), kind)
        emit("kLn2" + tag, split(log(2), 2, bits - (11 if tag == "D" else 8)), kind)
        emit("kLn10" + tag, split(log(10), 2, bits), kind)
        emit("kLog2e" + tag, split(1 / log(2), 2, bits), kind)
        emit("kLog10e" + tag, split(1 / log(10), 2, bits), kind)
        emit("kLog10of2" + tag, split(log(2) / log(10), 2, bits - (11 if tag == "D" else 8)), kind)
        emit("kTwoThirds" + tag, split(mpf(2) / 3, 2, bits), kind)
        emit("kTwoFifths" + tag, split(mpf(2) / 5, 2, bits), kind)
    # Gamma: logGamma(x) / ((x - 1) (x - 2)) on [1, 3] in x - 2; Stirling's series is closed form.
    emit("kLogGammaD", fit(log_gamma_quotient, mpf(-1), mpf(1), 34), "double")
    bessel_tables()
    # Bits of 2/pi after the binary point, 64 a word.
    bits = 1216
    digits = int(mpmath.floor(2 / pi * mpf(2) ** bits)) if mp.dps > 400 else two_over_pi(bits)
    words = [(digits >> (bits - 64 * (i + 1))) & ((1 << 64) - 1) for i in range(bits // 64)]
    print("SONDE_MATH_TABLE unsigned long long kTwoOverPi[%d] = {" % len(words))
    for i in range(0, len(words), 4):
        print("    " + " ".join("0x%016xull," % w for w in words[i:i + 4]))
    print("};")


def asymptotic(order, which):
    """The slowly varying factors P and Q of J and Y for x >= 8, as functions of z = (8/x)^2."""
    def value(z):
        x = 8 / sqrt(z if z > mpf("1e-12") else mpf("1e-12"))
        j, y = mpmath.besselj(order, x), mpmath.bessely(order, x)
        angle = x - (2 * order + 1) * pi / 4
        scale = sqrt(pi * x / 2)
        if which == "P":
            return scale * (j * cos(angle) + y * sin(angle))
        return scale * (y * cos(angle) - j * sin(angle)) * x / 8
    return value


def bessel_tables():
    """Bessel functions; the argument of the near fits is t = x^2 / 32 - 1 or x / 4 - 1, of the far ones 16 / x - 1."""
    def near(function):
        return lambda t: function(sqrt(32 * (t + 1)) if t > mpf("-0.99999999") else mpf("1e-4"))
    euler = mpmath.euler
    emit("kJ0", fit(near(lambda x: mpmath.besselj(0, x)), -1, 1, 20), "double")
    emit("kJ1", fit(near(lambda x: mpmath.besselj(1, x) / x), -1, 1, 20), "double")
    emit("kY0", fit(near(lambda x: mpmath.bessely(0, x) - 2 / pi * log(x / 2) * mpmath.besselj(0, x)), -1, 1, 20),
         "double")
    emit("kY1", fit(near(lambda x: (mpmath.bessely(1, x) - 2 / pi * (log(x / 2) * mpmath.besselj(1, x) - 1 / x)) / x),
                    -1, 1, 20), "double")
    for order in (0, 1):
        for which in "PQ":
            emit("k%s%d" % (which, order), fit(asymptotic(order, which), 0, 1, 12), "double")
    emit("kI0Near", fit(lambda t: mpmath.besseli(0, 4 * (t + 1)) * exp(-4 * (t + 1)), -1, 1, 28), "double")
    emit("kI1Near", fit(lambda t: mpmath.besseli(1, 4 * (t + 1)) * exp(-4 * (t + 1)) / (4 * (t + 1)), -1, 1, 28),
         "double")
    for order in (0, 1):
        emit("kI%dFar" % order, fit(lambda t: mpmath.besseli(order, 16 / (t + 1)) * exp(-16 / (t + 1)) *
                                    sqrt(16 / (t + 1)), mpf("-0.9999"), 1, 24), "double")


def two_over_pi(bits):
    before = mp.dps
    mp.dps = 420
    value = int(mpmath.floor(2 / +pi * mpf(2) ** bits))
    mp.dps = before
    return value


def log_gamma_quotient(t):
    """(loggamma(2 + t)) / (t (t + 1))"""
    if abs(t) < mpf("1e-30"):
        return mpmath.psi(0, 2)
    if abs(t + 1) < mpf("1e-30"):
        return -mpmath.psi(0, 1) * 1
    return loggamma(2 + t) / (t * (t + 1))


if __name__ == "__main__":
    main()
