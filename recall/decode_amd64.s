#include "textflag.h"

// CODE decodes the lowest byte of AX, or the lowest two, and shifts them out. ODD is where it goes with what is no symbol; from there
// a byte that stands for itself comes back to NEXT.
#define CODE(ODD, NEXT) \
	MOVBLZX AX, DX; \
	MOVQ    AX, BX; \
	SHRQ    $8, BX; \
	SHRQ    $16, AX; \
	MOVBLZX BX, R11; \
	MOVQ    DX, R12; \
	SHLQ    $8, R12; \
	LEAQ    (192-192<<8)(R12)(R11*1), R12; \
	CMPQ    DX, $192; \
	CMOVQCC R12, DX; \
	CMOVQCS BX, AX; \
	SBBQ    $-2, SI; \
	CMPQ    DX, R10; \
	JCC     ODD; \
	MOVQ    (R8)(DX*8), R11; \
	MOVBLZX (R9)(DX*1), R12; \
	MOVQ    R11, (DI); \
	ADDQ    R12, DI; \
NEXT:

// LITERAL writes the byte that stands for itself.
#define LITERAL(ODD, NEXT) \
ODD: \
	SUBQ $(192+63<<8), DX; \
	JCS  bad; \
	MOVB DX, (DI); \
	INCQ DI; \
	JMP  NEXT

// func decodeEights(space, codes *byte, n int, symbols *uint64, lengths *uint8, known int) (read, wrote int, ok bool)
TEXT ·decodeEights(SB), NOSPLIT, $0-65
	MOVQ space+0(FP), DI
	MOVQ codes+8(FP), SI
	MOVQ n+16(FP), CX
	ADDQ SI, CX
	MOVQ symbols+24(FP), R8
	MOVQ lengths+32(FP), R9
	MOVQ known+40(FP), R10

eight:
	MOVQ (SI), AX
	CODE(odd1, next1)
	CODE(odd2, next2)
	CODE(odd3, next3)
	CODE(odd4, next4)
	CMPQ SI, CX
	JCS  eight
	SUBQ codes+8(FP), SI
	SUBQ space+0(FP), DI
	MOVQ SI, read+48(FP)
	MOVQ DI, wrote+56(FP)
	MOVB $1, ok+64(FP)
	RET

	LITERAL(odd1, next1)
	LITERAL(odd2, next2)
	LITERAL(odd3, next3)
	LITERAL(odd4, next4)

bad:
	MOVQ $0, read+48(FP)
	MOVQ $0, wrote+56(FP)
	MOVB $0, ok+64(FP)
	RET
