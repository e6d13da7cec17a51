#include "textflag.h"

// TEST shifts into AX whether the set has the turn at OFF of turns.
#define TEST(OFF) \
	MOVL turns-64+OFF(SP), BX; \
	MOVL words-32+OFF(SP), DX; \
	MOVL (R8)(DX*4), DX; \
	BTL  BX, DX; \
	ADCL AX, AX

// KEEP appends those of the turns in Y4 whose bits are set in BX, the first one's highest, with their frequencies from X0. It uses
// Y5 to Y7.
#define KEEP \
	VPSRLW    $8, X0, X5; \
	VPMOVZXWD X5, Y5; \
	VPSLLD    $8, Y4, Y6; \
	VPOR      Y5, Y6, Y6; \
	VPMOVZXBD (R10)(BX*8), Y7; \
	VPERMD    Y6, Y7, Y6; \
	VMOVDQU   Y6, (DI); \
	POPCNTL   BX, BX; \
	LEAQ      (DI)(BX*4), DI

// func siftEights(out *uint32, buf *byte, n int, set *uint64, limit, last uint32, order *[256][8]uint8) (read, wrote int, now uint32)
TEXT ·siftEights(SB), NOSPLIT, $64-68
	MOVQ         out+0(FP), DI
	MOVQ         buf+8(FP), SI
	MOVQ         n+16(FP), R9
	ADDQ         SI, R9
	MOVQ         set+24(FP), R8
	MOVL         limit+32(FP), R11
	MOVL         last+36(FP), R12
	MOVQ         order+40(FP), R10
	VMOVD        R11, X14
	VPBROADCASTD X14, Y14
	VPCMPEQD     Y13, Y13, Y13
	VPSRLW       $8, X13, X12        // 0x00ff, as words
	VPSRLD       $29, Y13, Y13       // 7

after:
	VMOVD        R12, X15
	VPBROADCASTD X15, Y15            // the turn before

eight:
	// The turns: the distances add up, as if there were none of two bytes. The set is not read behind its end, whatever they are.
	VMOVDQU   (SI), X0
	VPAND     X12, X0, X1
	VPSLLDQ   $2, X1, X2
	VPADDW    X2, X1, X1
	VPSLLDQ   $4, X1, X2
	VPADDW    X2, X1, X1
	VPSLLDQ   $8, X1, X2
	VPADDW    X2, X1, X1
	VPMOVZXWD X1, Y4
	VPADDD    Y15, Y4, Y4
	VPMINUD   Y14, Y4, Y5
	VPSRLD    $5, Y5, Y5
	VMOVDQU   Y4, turns-64(SP)
	VMOVDQU   Y5, words-32(SP)
	XORL      AX, AX
	TEST(0)
	TEST(4)
	TEST(8)
	TEST(12)
	TEST(16)
	TEST(20)
	TEST(24)
	TEST(28)
	MOVL      AX, BX
	VPMOVMSKB X0, AX
	ANDL      $0x5555, AX
	JNZ       odd
	VPERMD    Y4, Y13, Y15
	KEEP
	ADDQ      $16, SI
	CMPQ      SI, R9
	JCS       eight
	VMOVD     X15, R12
	JMP       done

odd:
	// What stands before a distance of two bytes is kept, then that is read by itself.
	BSFL    AX, CX
	MOVL    turns-64(SP)(CX*2), R12
	MOVBLZX (SI)(CX*1), AX
	SUBL    AX, R12
	ADDQ    CX, SI
	SHRL    $1, CX
	MOVL    $0xff00, DX
	SHRL    CX, DX
	ANDL    DX, BX
	ANDL    $0xff, BX
	KEEP

long:
	MOVBLZX 1(SI), DX
	CMPL    DX, $0x80
	JCC     done                     // three bytes
	ANDL    $0x7f, AX
	SHLL    $7, DX
	ADDL    DX, AX
	ADDL    R12, AX
	CMPL    AX, R11
	JHI     done
	MOVL    AX, R12
	SHLL    $8, AX
	MOVBLZX 2(SI), DX
	ORL     DX, AX
	MOVL    AX, (DI)
	MOVL    R12, AX
	SHRL    $6, AX
	MOVQ    (R8)(AX*8), AX
	XORL    DX, DX
	BTQ     R12, AX
	ADCL    DX, DX
	LEAQ    (DI)(DX*4), DI
	ADDQ    $3, SI
	CMPQ    SI, R9
	JCC     done
	MOVBLZX (SI), AX
	CMPL    AX, $0x80
	JCC     long
	JMP     after

done:
	SUBQ buf+8(FP), SI
	SUBQ out+0(FP), DI
	SHRQ $2, DI
	MOVQ SI, read+48(FP)
	MOVQ DI, wrote+56(FP)
	MOVL R12, now+64(FP)
	VZEROUPPER
	RET
