#include "textflag.h"

// MARK leaves in DST the bytes, of 32 from at(SI)(AX*1) on, that are quotes (Y0) and do not stand behind exactly one
// backslash (Y1). It uses Y2 and Y3.
#define MARK(at, DST) \
	VPCMPEQB at(SI)(AX*1), Y0, Y2; \
	VPCMPEQB at-1(SI)(AX*1), Y1, Y3; \
	VPCMPEQB at-2(SI)(AX*1), Y1, DST; \
	VPANDN   Y3, DST, DST; \
	VPANDN   Y2, DST, DST

// MARK64 is MARK for 64 bytes with AVX-512. It uses K1 and K2.
#define MARK64(at, DST) \
	VPCMPEQB at(SI)(AX*1), Z0, K1; \
	VPCMPEQB at-1(SI)(AX*1), Z1, K1, K2; \
	VPCMPEQB at-2(SI)(AX*1), Z1, K2, DST; \
	KXORQ    K1, K2, K2; \
	KXORQ    K2, DST, DST

// ahead is how long before its turn text is asked for, in bytes. The caches' own reading ahead makes it a third slower.
#define ahead 512

// func farQuote(b []byte, i int, wide bool) int
TEXT ·farQuote(SB), NOSPLIT, $0-48
	MOVQ         b_base+0(FP), SI
	MOVQ         b_len+8(FP), CX
	MOVQ         i+24(FP), AX
	MOVQ         $0x2222222222222222, DX
	VMOVQ        DX, X0
	VPBROADCASTQ X0, Y0
	MOVQ         $0x5c5c5c5c5c5c5c5c, DX
	VMOVQ        DX, X1
	VPBROADCASTQ X1, Y1

	// Short strings end in the first step.
	SUBQ      $32, CX
	CMPQ      AX, CX
	JGT       done
	MARK(0, Y4)
	VPMOVMSKB Y4, DX
	TESTL     DX, DX
	JNZ       found
	ADDQ      $32, AX
	CMPB      wide+32(FP), $0
	JNE       wide
	SUBQ      $32, CX

large:
	CMPQ       AX, CX
	JGT        small
	PREFETCHT0 ahead(SI)(AX*1)
	MARK(0, Y4)
	MARK(32, Y5)
	VPOR       Y4, Y5, Y6
	VPMOVMSKB  Y6, DX
	TESTL      DX, DX
	JNZ        hit
	ADDQ       $64, AX
	JMP        large

small:
	ADDQ $32, CX

step:
	CMPQ      AX, CX
	JGT       done
	MARK(0, Y4)
	VPMOVMSKB Y4, DX
	TESTL     DX, DX
	JNZ       found
	ADDQ      $32, AX
	JMP       step

hit:
	VPMOVMSKB Y4, DX
	VPMOVMSKB Y5, BX
	SHLQ      $32, BX
	ORQ       BX, DX

found:
	BSFQ DX, DX
	ADDQ DX, AX

done:
	VZEROUPPER
	MOVQ AX, ret+40(FP)
	RET

wide:
	SUBQ         $96, CX
	CMPQ         AX, CX
	JGT          narrow
	VPBROADCASTQ X0, Z0
	VPBROADCASTQ X1, Z1

	// From a whole line of the cache on, so that two reads of three take one line.
	MARK64(0, K3)
	KMOVQ K3, DX
	TESTQ DX, DX
	JNZ   found
	LEAQ  64(SI)(AX*1), DX
	ANDQ  $63, DX
	SUBQ  DX, AX
	ADDQ  $64, AX
	CMPQ  AX, CX
	JGT   narrow

next:
	PREFETCHT0 ahead(SI)(AX*1)
	PREFETCHT0 ahead+64(SI)(AX*1)
	MARK64(0, K3)
	MARK64(64, K4)
	KORTESTQ   K3, K4
	JNZ        marked
	SUBQ       $-128, AX
	CMPQ       AX, CX
	JLE        next

narrow:
	ADDQ $96, CX
	JMP  step

marked:
	KMOVQ K3, DX
	TESTQ DX, DX
	JNZ   found
	ADDQ  $64, AX
	KMOVQ K4, DX
	JMP   found
