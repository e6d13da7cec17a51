#include "textflag.h"

// func leastHashes(m, hashes *minhash, known int, ids *uint32, n int) (ok bool)
TEXT ·leastHashes(SB), NOSPLIT, $0-41
	MOVQ  m+0(FP), DI
	MOVQ  hashes+8(FP), SI
	MOVQ  known+16(FP), BX
	MOVQ  ids+24(FP), DX
	MOVQ  n+32(FP), CX
	MOVOU (DI), X0

next:
	MOVL   (DX), AX
	CMPQ   AX, BX
	JCC    bad
	SHLQ   $4, AX
	MOVOU  (SI)(AX*1), X1
	PMINUD X1, X0
	ADDQ   $4, DX
	DECQ   CX
	JNZ    next
	MOVOU  X0, (DI)
	MOVB   $1, ok+40(FP)
	RET

bad:
	MOVB $0, ok+40(FP)
	RET
