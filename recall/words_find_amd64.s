#include "go_asm.h"
#include "textflag.h"

// TAIL has the last 16 bytes of the text read where more can be read behind them. They are for words that begin among them.
#define TAIL \
	LEAQ finding_tail(CX), SI; \
	SUBQ R12, SI; \
	ADDQ $15, R12

// func findPlain(f *finding, n int) int
//
// CX is f, SI the text, R8 the block, R9 where it begins, AX what is left of it, R10 and R11 the next block's letters and joins, turned
// by one bit, DI where what is found goes, R12 the last place where sixteen bytes can be read; once TAIL was done, the last of the text.
TEXT ·findPlain(SB), NOSPLIT, $0-24
	MOVQ f+0(FP), CX
	MOVQ n+8(FP), DI
	MOVQ finding_text(CX), SI
	MOVQ (finding_text+8)(CX), R12
	SUBQ $16, R12
	JLT  same
	SHLQ $4, DI
	LEAQ finding_found(CX)(DI*1), DI
	MOVQ finding_nth(CX), R9
	MOVQ finding_left(CX), AX
	MOVQ R9, R8
	SHLQ $5, R8
	ADDQ finding_blocks(CX), R8
	SHLQ $6, R9
	CMPQ R9, R12
	JGT  begin

begun:
	MOVQ (32+block_letters)(R8), R10
	MOVQ (32+block_joins)(R8), R11
	ADDQ R10, R10
	ADDQ R11, R11
	JMP  word

begin: // within the last 16 bytes
	TAIL
	CMPQ R9, R12
	JGT  done
	JMP  begun

turn:
	MOVQ block_letters(R8), BX
	SHRQ $63, BX
	ADDQ $32, R8
	ADDQ $64, R9
	CMPQ R9, R12
	JGT  near

turned:
	MOVQ block_letters(R8), AX
	LEAQ (BX)(AX*2), BX
	ANDNQ AX, BX, AX
	ORQ  block_signs(R8), AX
	MOVQ (32+block_letters)(R8), R10
	MOVQ (32+block_joins)(R8), R11
	ADDQ R10, R10
	ADDQ R11, R11

word:
	TESTQ AX, AX
	JEQ   turn
	LEAQ  (finding_found+const_foundAtOnce*16)(CX), DX
	CMPQ  DI, DX
	JEQ   done
	TZCNTQ AX, BX
	MOVQ  BX, DX
	NOTQ  DX

	// How many letters there are, 1 for a sign; and whether it goes on behind them.
	SHRXQ BX, block_letters(R8), R13
	SHLXQ DX, R10, R14
	ORQ   R14, R13
	NOTQ  R13
	TZCNTQ R13, R13
	CMPQ  R13, $1
	ADCQ  $0, R13
	CMPQ  R13, $16
	JHI   done
	SHRXQ BX, block_joins(R8), R14
	SHLXQ DX, R11, DX
	ORQ   DX, R14
	SHRXQ R13, R14, R14
	SHRXQ BX, block_odd(R8), DX
	ORQ   DX, R14
	TESTB $1, R14
	JNE   done
	ADDQ  R9, BX
	CMPQ  BX, R12
	JGT   last

known:
	BLSRQ AX, AX

	// The hash.
	MOVQ  R13, DX
	SHLQ  $56, DX
	XORQ  (finding_seed+8)(CX), DX
	LEAQ  (R13*8), R14
	ADDQ  BX, R13
	SHLQ  $32, R13
	ORQ   BX, R13
	MOVQ  R13, (DI)
	BZHIQ R14, (SI)(BX*1), R13
	XORQ  finding_seed(CX), R13
	SUBQ  $64, R14
	MOVQ  $0, R15
	CMOVQCS R15, R14
	BZHIQ R14, 8(SI)(BX*1), R14
	XORQ  R14, DX
	MULXQ R13, R13, R14
	XORQ  R14, R13
	ADDQ  finding_salt(CX), R13

	// What is known of it.
	VMOVQ        R13, X0
	VPBROADCASTQ X0, Y0
	MOVQ         (finding_known+8)(CX), DX
	DECQ         DX
	ANDQ         R13, DX
	SHLQ         $6, DX
	ADDQ         finding_known(CX), DX
	VPCMPEQQ     (DX), Y0, Y0
	VPAND        32(DX), Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPOR         X1, X0, X0
	VPSHUFD      $0xee, X0, X1
	VPOR         X1, X0, X0
	VMOVQ        X0, 8(DI)
	ADDQ         $16, DI
	JMP          word

last: // 16 bytes, where a word begins
	TAIL
	JMP known

near: // them, where a block begins, or the end: next begins there
	MOVQ (finding_text+8)(CX), DX
	DECQ DX
	CMPQ R12, DX
	JEQ  end
	TAIL
	CMPQ R9, R12
	JLE  turned

end:
	MOVQ $0, AX
	SUBQ $32, R8
	SUBQ $64, R9

done:
	VZEROUPPER
	SHRQ $6, R9
	MOVQ R9, finding_nth(CX)
	MOVQ AX, finding_left(CX)
	LEAQ finding_found(CX), DX
	SUBQ DX, DI
	SHRQ $4, DI
	MOVQ DI, ret+16(FP)
	RET

same:
	MOVQ DI, ret+16(FP)
	RET
