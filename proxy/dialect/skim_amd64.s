#include "textflag.h"

// MARK leaves in DST the bytes, of 32 from at(SI)(AX*1) on, that are quotes (Y0) and do not stand behind exactly one
// backslash (Y1). It uses Y2 and Y3.
#define MARK(at, DST) \
	VPCMPEQB at(SI)(AX*1), Y0, Y2; \
	VPCMPEQB at-1(SI)(AX*1), Y1, Y3; \
	VPCMPEQB at-2(SI)(AX*1), Y1, DST; \
	VPANDN   Y3, DST, DST; \
	VPANDN   Y2, DST, DST

// func farQuote(b []byte, i int) int
TEXT ·farQuote(SB), NOSPLIT, $0-40
	MOVQ         b_base+0(FP), SI
	MOVQ         b_len+8(FP), CX
	MOVQ         i+24(FP), AX
	MOVQ         $0x2222222222222222, DX
	MOVQ         DX, X0
	VPBROADCASTQ X0, Y0
	MOVQ         $0x5c5c5c5c5c5c5c5c, DX
	MOVQ         DX, X1
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
	SUBQ      $32, CX

large:
	CMPQ      AX, CX
	JGT       small
	MARK(0, Y4)
	MARK(32, Y5)
	VPOR      Y4, Y5, Y6
	VPMOVMSKB Y6, DX
	TESTL     DX, DX
	JNZ       hit
	ADDQ      $64, AX
	JMP       large

small:
	ADDQ      $32, CX
	CMPQ      AX, CX
	JGT       done
	MARK(0, Y4)
	VPMOVMSKB Y4, DX
	TESTL     DX, DX
	JNZ       found
	ADDQ      $32, AX
	JMP       done

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
	MOVQ AX, ret+32(FP)
	RET
