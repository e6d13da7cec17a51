#include "textflag.h"

// The classes of a byte are the bits that its low and its high half have in common in these tables:
//
//	01  0-9, p-y
//	02  a-l and n but e
//	04  e
//	08  m
//	10  o
//	20  < |
//	40  [ DEL, and { _, which have a half of each and are only looked at once more
//	80  what is no printable ASCII
//
// Letters are of either case. z is in none, as signs are: it is only looked at once more where it follows an r.
DATA lowClasses<>+0(SB)/8, $0x8383858383838381
DATA lowClasses<>+8(SB)/8, $0xd08288a2c2828383
GLOBL lowClasses<>(SB), RODATA|NOPTR, $16
DATA highClasses<>+0(SB)/8, $0x611e411e21008080
DATA highClasses<>+8(SB)/8, $0x8080808080808080
GLOBL highClasses<>(SB), RODATA|NOPTR, $16

// Masks, the blank, and an r.
DATA plainBytes<>+0(SB)/8, $0x00007220e0041b0f
GLOBL plainBytes<>(SB), RODATA|NOPTR, $8

// CLASSES leaves in DST the classes of the 32 bytes from at(SI)(AX*1) on. It uses Y0.
#define CLASSES(at, DST) \
	VMOVDQU at(SI)(AX*1), DST; \
	VPSRLW  $4, DST, Y0; \
	VPAND   Y10, Y0, Y0; \
	VPAND   Y10, DST, DST; \
	VPSHUFB Y0, Y9, Y0; \
	VPSHUFB DST, Y8, DST; \
	VPAND   Y0, DST, DST

// LOOK clears the zero flag where something may be in the 32 bytes from (SI)(AX*1) on: an odd byte, a blank before a blank, or
// an r that may begin the name. It does not where one of the three bytes behind it (Y2, Y3, Y4) is a digit or a letter that
// can't be there: any but e, m and o; the first an m or o; the second an o, or an m without the e; the third an m without the
// e, or an o without the m; a second e.
#define LOOK \
	CLASSES(1, Y2); \
	CLASSES(2, Y3); \
	CLASSES(3, Y4); \
	VPADDB   Y2, Y2, Y5; \
	VPANDN   Y3, Y5, Y5; \
	VPOR     Y2, Y5, Y5; \
	VPOR     Y2, Y3, Y6; \
	VPADDB   Y6, Y6, Y6; \
	VPANDN   Y4, Y6, Y6; \
	VPOR     Y6, Y5, Y5; \
	VPAND    Y11, Y5, Y5; \
	VPAND    Y3, Y4, Y6; \
	VPOR     Y3, Y4, Y4; \
	VPAND    Y2, Y4, Y4; \
	VPOR     Y6, Y4, Y4; \
	VPAND    Y12, Y4, Y4; \
	VPOR     Y4, Y5, Y5; \
	VPXOR    Y4, Y4, Y4; \
	VPCMPEQB Y4, Y5, Y5; \
	VMOVDQU  (SI)(AX*1), Y1; \
	VPOR     Y14, Y1, Y2; \
	VPCMPEQB Y15, Y2, Y2; \
	VPAND    Y2, Y5, Y5; \
	VPCMPEQB Y14, Y1, Y3; \
	VPCMPEQB 1(SI)(AX*1), Y14, Y4; \
	VPAND    Y3, Y4, Y4; \
	VPOR     Y4, Y5, Y5; \
	CLASSES(0, Y1); \
	VPAND    Y13, Y1, Y1; \
	VPOR     Y1, Y5, Y5; \
	VPTEST   Y5, Y5

// func plainBlocks(text string) int
TEXT ·plainBlocks(SB), NOSPLIT, $0-24
	MOVQ           text_base+0(FP), SI
	MOVQ           text_len+8(FP), CX
	XORL           AX, AX
	SUBQ           $35, CX // where the last 32 bytes begin that have three behind them
	JLT            short
	VBROADCASTI128 lowClasses<>(SB), Y8
	VBROADCASTI128 highClasses<>(SB), Y9
	VPBROADCASTB   plainBytes<>+0(SB), Y10
	VPBROADCASTB   plainBytes<>+1(SB), Y11
	VPBROADCASTB   plainBytes<>+2(SB), Y12
	VPBROADCASTB   plainBytes<>+3(SB), Y13
	VPBROADCASTB   plainBytes<>+4(SB), Y14
	VPBROADCASTB   plainBytes<>+5(SB), Y15

next:
	LOOK
	JNZ  done
	ADDQ $32, AX
	CMPQ AX, CX
	JLE  next

	// What is left are fewer than 32 bytes: they are looked at with some before them.
	MOVQ AX, DX
	MOVQ CX, AX
	LOOK
	JNZ  back
	ADDQ $32, AX

done:
	VZEROUPPER

short:
	MOVQ AX, ret+16(FP)
	RET

back:
	MOVQ DX, AX
	JMP  done
