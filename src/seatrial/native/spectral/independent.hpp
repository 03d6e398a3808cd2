// A loop whose iterations are independent, although the compiler cannot see it.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#define SEATRIAL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define SEATRIAL_INDEPENDENT // checks at run time whether its arrays overlap
#endif
