package documents

import (
	"bytes"

	"github.com/ledongthuc/pdf"
)

const (
	maxForms    = 8   // within each other
	maxOperands = 64  // of an operator; earlier ones are dropped
	maxStates   = 256 // saved by q; deeper ones are not saved
)

// matrix is a, b, c, d, e, f of a transformation: x is a*x + c*y + e.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// times returns the transformation that does m, then n.
func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// textState is what q saves and Q restores.
type textState struct {
	ctm                matrix
	font               *pdfFont
	size, scale        float64
	leading            float64
	charGap, wordGap   float64
	textMatrix, origin matrix // origin is that of the line
}

// interpreter reads one content stream.
type interpreter struct {
	*pdfDocument
	textState
	saved     []textState
	resources pdf.Value
	source    fontSource
	operands  []any
	moved     bool // text was placed since the last one was shown
	level     int  // of forms
}

// interpret writes the text of a content stream to the layout.
func (d *pdfDocument) interpret(content []byte, resources pdf.Value, source fontSource, ctm matrix, level int) {
	i := interpreter{pdfDocument: d, resources: resources, source: source, level: level}
	i.textState = textState{ctm: ctm, scale: 1, textMatrix: identity, origin: identity}
	l := pdfLexer{data: content, content: true}
	for {
		before := l.at
		token, ok := l.token()
		if !ok {
			return
		}
		word, isWord := token.(pdfWord)
		switch {
		case isWord && (word == "[" || word == "<<"):
			l.at = before
			v, _ := l.value(0)
			i.push(v)
		case !isWord:
			i.push(token)
		case word == "BI":
			l.skipImage()
			i.operands = i.operands[:0]
		default:
			i.operator(string(word))
			i.operands = i.operands[:0]
		}
	}
}

func (i *interpreter) push(v any) {
	if len(i.operands) == maxOperands {
		i.operands = append(i.operands[:0], i.operands[1:]...)
	}
	i.operands = append(i.operands, v)
}

// operand returns the nth operand from the last one, which is 0.
func (i *interpreter) operand(n int) any {
	if n >= len(i.operands) {
		return nil
	}
	return i.operands[len(i.operands)-1-n]
}

// num returns the nth operand from the last one as a number.
func (i *interpreter) num(n int) float64 {
	switch v := i.operand(n).(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// transformation returns the last six operands.
func (i *interpreter) transformation() matrix {
	return matrix{i.num(5), i.num(4), i.num(3), i.num(2), i.num(1), i.num(0)}
}

func (i *interpreter) operator(name string) {
	switch name {
	case "q":
		if len(i.saved) < maxStates {
			i.saved = append(i.saved, i.textState)
		}
	case "Q":
		if n := len(i.saved); n > 0 {
			i.textState, i.saved = i.saved[n-1], i.saved[:n-1]
		}
	case "cm":
		i.ctm = i.transformation().times(i.ctm)
	case "Do":
		if name, ok := i.operand(0).(pdfName); ok {
			i.form(string(name))
		}
	case "BT":
		i.textMatrix, i.origin = identity, identity
	case "Tf":
		if name, ok := i.operand(1).(pdfName); ok {
			i.font, i.size = i.fonts.get(i.source, string(name)), i.num(0)
		}
	case "Tc":
		i.charGap = i.num(0)
	case "Tw":
		i.wordGap = i.num(0)
	case "Tz":
		i.scale = i.num(0) / 100
	case "TL":
		i.leading = i.num(0)
	default:
		i.textOperator(name)
	}
}

// form reads a form: content that has a name, a matrix and resources.
func (i *interpreter) form(name string) {
	form := i.resources.Key("XObject").Key(name)
	if i.level == maxForms || form.Kind() != pdf.Stream || form.Key("Subtype").Name() != "Form" {
		return
	}
	m := identity
	if own := form.Key("Matrix"); own.Len() == len(m) {
		for n := range m {
			m[n] = own.Index(n).Float64()
		}
	}
	resources, source := i.resources, i.source
	if own := form.Key("Resources"); own.Kind() == pdf.Dict {
		resources, source = own, i.fonts.source(own)
	}
	i.interpret(i.read(form), resources, source, m.times(i.ctm), i.level+1)
}

// skipImage skips an image within the content, after its BI.
func (l *pdfLexer) skipImage() {
	for {
		token, ok := l.token()
		if !ok {
			return
		}
		if token == pdfWord("ID") {
			break
		}
	}
	for l.at < len(l.data) {
		end := bytes.Index(l.data[l.at:], []byte("EI"))
		if end < 0 {
			l.at = len(l.data)
			return
		}
		end += l.at
		l.at = end + len("EI")
		if end > 0 && isPDFSpace(l.data[end-1]) && (l.at == len(l.data) || isPDFSpace(l.data[l.at])) {
			return
		}
	}
}
