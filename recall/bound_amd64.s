#include "textflag.h"

// The offsets of boundTables.
#define LOWER1 0
#define UPPER1 16
#define ASST1 32
#define LOWER2 48
#define UPPER2 64
#define ASST2 80
#define USERLEN 96
#define ASSTLEN 112
#define LOWF 128
#define HIGHF 144
#define BASE 160
#define USERSHIFT 162
#define ASSTSHIFT 164

// LOOK takes the bytes of INDEX in the table at OFF(DI) to DST, which may be INDEX. It uses Y7.
#define LOOK(OFF, INDEX, DST) \
	VBROADCASTI128 OFF(DI), Y7; \
	VPSHUFB INDEX, Y7, DST

// FACTOR multiplies Y0 by what the table at OFF(DI) has for four bits of each word of Y2: the lowest where SHIFT is $8, the next where
// it is $4. Y3 masks them, and it uses Y1 and Y7.
#define FACTOR(SHIFT, OFF) \
	VPSLLW SHIFT, Y2, Y1; \
	VPAND Y3, Y1, Y1; \
	VPOR Y10, Y1, Y1; \
	LOOK(OFF, Y1, Y1); \
	VPMULHUW Y1, Y0, Y0; \
	VPSUBW Y8, Y0, Y0

// HALF makes the bounds of 16 turns, eight from each lane: of those whose briefs stand at OFF(R10) and 64 bytes behind, whose
// user's and assistant's parts are the bytes of PARTS, and where OUT is set if the parts are too large. It leaves them in OUT,
// and uses Y0 to Y3 and Y7.
// Y2 gets the signs, as words, then Y0 and Y1 the lengths, then indices; the byte beside an index is 0x80, which gives zero.
#define HALF(OFF, PARTS, OUT) \
	VMOVDQU (OFF)(R10), X0; \
	VINSERTI128 $1, (OFF+64)(R10), Y0, Y0; \
	VMOVDQU (OFF+16)(R10), X1; \
	VINSERTI128 $1, (OFF+80)(R10), Y1, Y1; \
	VPSRLD $16, Y0, Y2; \
	VPSRLD $16, Y1, Y3; \
	VPACKUSDW Y3, Y2, Y2; \
	VPBLENDW $0xAA, Y15, Y0, Y0; \
	VPBLENDW $0xAA, Y15, Y1, Y1; \
	VPACKUSDW Y1, Y0, Y0; \
	VPSRLW $8, Y0, Y1; \
	VPSLLW $8, Y0, Y0; \
	VPSRLW $8, Y0, Y0; \
	VPSRLW X13, Y0, Y0; \
	VPSRLW X14, Y1, Y1; \
	VPMINUW Y11, Y0, Y0; \
	VPMINUW Y11, Y1, Y1; \
	VPSLLW $8, Y1, Y1; \
	VPSLLW $8, Y10, Y3; \
	VPOR Y3, Y0, Y0; \
	VPOR Y10, Y1, Y1; \
	LOOK(USERLEN, Y0, Y0); \
	LOOK(ASSTLEN, Y1, Y1); \
	VPOR Y1, Y0, Y0; \
	VPMADDUBSW Y0, PARTS, Y0; \
	VPADDSW Y12, Y0, Y0; \
	VPCMPEQW Y9, Y0, Y1; \
	VPOR Y1, OUT, OUT; \
	VPSLLW $8, Y11, Y3; \
	FACTOR($8, LOWF); \
	FACTOR($4, HIGHF); \
	VPSRLW $1, OUT, OUT; \
	VPOR Y0, OUT, OUT

// func boundsOf(out *int16, first, second *frequency, briefs *brief, n int, t *boundTables)
TEXT ·boundsOf(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), R8
	MOVQ first+8(FP), SI
	MOVQ second+16(FP), DX
	MOVQ briefs+24(FP), R10
	MOVQ n+32(FP), CX
	MOVQ t+40(FP), DI

	VPXOR        Y15, Y15, Y15       // 0
	VPCMPEQB     Y8, Y8, Y8          // -1
	VPSRLW       $1, Y8, Y9          // 0x7fff, as words
	VPSRLW       $12, Y8, Y11        // 15, as words
	VPSRLW       $15, Y8, Y10
	VPSLLW       $7, Y10, Y10        // 0x80, as words
	VPBROADCASTW BASE(DI), Y12
	MOVWLZX      USERSHIFT(DI), AX
	VMOVQ        AX, X13
	MOVWLZX      ASSTSHIFT(DI), AX
	VMOVQ        AX, X14

loop:
	// What the words add: for the user in Y2, for the assistant in Y3.
	VPSLLW    $8, Y11, Y6
	VPOR      Y11, Y6, Y6            // 15, as bytes
	VMOVDQU   (SI), Y0
	VPSRLW    $4, Y0, Y1
	VPAND     Y6, Y0, Y0
	VPAND     Y6, Y1, Y1
	LOOK(LOWER1, Y0, Y2)
	LOOK(UPPER1, Y1, Y4)
	VPADDUSB  Y4, Y2, Y2
	LOOK(ASST1, Y1, Y3)
	VMOVDQU   (DX), Y0
	VPSRLW    $4, Y0, Y1
	VPAND     Y6, Y0, Y0
	VPAND     Y6, Y1, Y1
	LOOK(LOWER2, Y0, Y4)
	VPADDUSB  Y4, Y2, Y2
	LOOK(UPPER2, Y1, Y4)
	VPADDUSB  Y4, Y2, Y2
	LOOK(ASST2, Y1, Y4)
	VPADDUSB  Y4, Y3, Y3
	VPCMPEQB  Y8, Y2, Y0
	VPCMPEQB  Y8, Y3, Y1
	VPOR      Y1, Y0, Y0
	VPUNPCKLBW Y0, Y0, Y5
	VPUNPCKHBW Y0, Y0, Y6
	VPUNPCKLBW Y3, Y2, Y4
	VPUNPCKHBW Y3, Y2, Y3
	VMOVDQU   Y3, (R8)               // until the first half is done
	HALF(0, Y4, Y5)
	VMOVDQU   (R8), Y4
	HALF(32, Y4, Y6)
	VPERM2I128 $0x20, Y6, Y5, Y0
	VPERM2I128 $0x31, Y6, Y5, Y1
	VMOVDQU   Y0, (R8)
	VMOVDQU   Y1, 32(R8)
	ADDQ      $32, SI
	ADDQ      $32, DX
	ADDQ      $128, R10
	ADDQ      $64, R8
	SUBQ      $32, CX
	JNZ       loop
	VZEROUPPER
	RET

// func overOf(bounds *int16, least int16, over *uint64, n int)
TEXT ·overOf(SB), NOSPLIT, $0-32
	MOVQ         bounds+0(FP), SI
	MOVWLZX      least+8(FP), AX
	MOVQ         over+16(FP), DI
	MOVQ         n+24(FP), CX
	DECQ         AX
	VMOVQ        AX, X0
	VPBROADCASTW X0, Y0

next:
	VMOVDQU   (SI), Y1
	VMOVDQU   32(SI), Y2
	VMOVDQU   64(SI), Y3
	VMOVDQU   96(SI), Y4
	VPCMPGTW  Y0, Y1, Y1
	VPCMPGTW  Y0, Y2, Y2
	VPCMPGTW  Y0, Y3, Y3
	VPCMPGTW  Y0, Y4, Y4
	VPACKSSWB Y2, Y1, Y1
	VPACKSSWB Y4, Y3, Y3
	VPERMQ    $0xD8, Y1, Y1
	VPERMQ    $0xD8, Y3, Y3
	VPMOVMSKB Y1, AX
	VPMOVMSKB Y3, DX
	SHLQ      $32, DX
	ORQ       DX, AX
	MOVQ      AX, (DI)
	ADDQ      $128, SI
	ADDQ      $8, DI
	DECQ      CX
	JNZ       next
	VZEROUPPER
	RET
