#include "textflag.h"

// BYTES makes all bytes of a register one.
#define BYTES(value, to, tox) \
	MOVL         $value, AX; \
	VMOVQ        AX, tox; \
	VPBROADCASTB tox, to

// HALF reads 32 characters: a bit each that is not a letter to R8, and to R9, R10 and R11 one of each that is of no class of signs, of
// odd ones and of joining ones.
#define HALF(at) \
	VMOVDQU   at, Y0; \
	VPOR      Y0, Y15, Y15; \
	VPOR      Y14, Y0, Y1; \
	VPSUBB    Y13, Y1, Y1; \
	VPADDUSB  Y12, Y1, Y1; \
	VPMOVMSKB Y1, R8; \
	VPSRLW    $4, Y0, Y2; \
	VPAND     Y11, Y0, Y0; \
	VPAND     Y11, Y2, Y2; \
	VPSHUFB   Y0, Y10, Y0; \
	VPSHUFB   Y2, Y9, Y2; \
	VPAND     Y0, Y2, Y0; \
	VPAND     Y8, Y0, Y1; \
	VPCMPEQB  Y4, Y1, Y1; \
	VPMOVMSKB Y1, R9; \
	VPAND     Y7, Y0, Y1; \
	VPCMPEQB  Y4, Y1, Y1; \
	VPMOVMSKB Y1, R10; \
	VPAND     Y6, Y0, Y1; \
	VPCMPEQB  Y4, Y1, Y1; \
	VPMOVMSKB Y1, R11

// WHOLE joins the bits of both halves and turns them over.
#define WHOLE(high, low, to) \
	SHLQ $32, high; \
	ORQ  low, high; \
	NOTQ high; \
	MOVQ high, to

// func readBlocksAtOnce(b *block, text string, classes *[2][16]byte) (all byte)
TEXT ·readBlocksAtOnce(SB), NOSPLIT, $64-33
	MOVQ           b+0(FP), R14
	MOVQ           text_base+8(FP), SI
	MOVQ           text_len+16(FP), CX
	MOVQ           classes+24(FP), DX
	VBROADCASTI128 (DX), Y10
	VBROADCASTI128 16(DX), Y9
	BYTES(0x20, Y14, X14)
	BYTES(0x61, Y13, X13)       // 'a'
	BYTES(0x66, Y12, X12)       // takes what lies behind 'z'-'a' to 0x80
	BYTES(0x0f, Y11, X11)
	BYTES(0xcf, Y8, X8)         // of signs
	BYTES(0xc8, Y7, X7)         // of odd ones
	BYTES(0x30, Y6, X6)         // of joining ones
	VPXOR          Y4, Y4, Y4
	VPXOR          Y15, Y15, Y15
	SUBQ           $64, CX
	JCS            rest

next:
	HALF((SI))
	MOVQ R8, BX
	MOVQ R9, R12
	MOVQ R10, R13
	MOVQ R11, AX
	HALF(32(SI))
	WHOLE(R8, BX, (R14))
	WHOLE(R9, R12, 8(R14))
	WHOLE(R11, AX, 16(R14))
	WHOLE(R10, R13, 24(R14))
	ADDQ $64, SI
	ADDQ $32, R14
	SUBQ $64, CX
	JCC  next

rest: // with zeros behind it
	ADDQ    $64, CX
	JEQ     done
	MOVQ    SP, DI
	VMOVDQU Y4, (DI)
	VMOVDQU Y4, 32(DI)
	REP; MOVSB
	MOVQ    SP, SI
	JMP     next

done: // the bytes of Y15 into one
	VEXTRACTI128 $1, Y15, X0
	VPOR         X0, X15, X0
	VPSRLDQ      $8, X0, X1
	VPOR         X0, X1, X0
	VMOVQ        X0, AX
	MOVQ         AX, BX
	SHRQ         $32, BX
	ORQ          BX, AX
	MOVQ         AX, BX
	SHRQ         $16, BX
	ORQ          BX, AX
	MOVQ         AX, BX
	SHRQ         $8, BX
	ORQ          BX, AX
	MOVB         AX, all+32(FP)
	VZEROUPPER
	RET
