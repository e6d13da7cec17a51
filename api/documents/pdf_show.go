package documents

import "strings"

// textOperator does the operators that move and show text.
func (i *interpreter) textOperator(name string) {
	switch name {
	case "Td":
		i.move(i.num(1), i.num(0))
	case "TD":
		i.leading = -i.num(0)
		i.move(i.num(1), i.num(0))
	case "T*":
		i.move(0, -i.leading)
	case "Tm":
		i.origin = i.transformation()
		i.textMatrix, i.moved = i.origin, true
	case "Tj":
		i.show(i.operand(0))
	case "'":
		i.move(0, -i.leading)
		i.show(i.operand(0))
	case "\"":
		i.wordGap, i.charGap = i.num(2), i.num(1)
		i.move(0, -i.leading)
		i.show(i.operand(0))
	case "TJ":
		list, _ := i.operand(0).([]any)
		for _, v := range list {
			i.showOrKern(v)
		}
	}
}

// move begins a line at an offset from the start of the last one.
func (i *interpreter) move(x, y float64) {
	i.origin = matrix{1, 0, 0, 1, x, y}.times(i.origin)
	i.textMatrix, i.moved = i.origin, true
}

// showOrKern shows an element of a list that is a string; a number moves the
// next one back by thousandths of the size.
func (i *interpreter) showOrKern(v any) {
	switch v := v.(type) {
	case string:
		i.show(v)
	case int64:
		i.advance(-float64(v) / 1000 * i.size * i.scale)
	case float64:
		i.advance(-v / 1000 * i.size * i.scale)
	}
}

func (i *interpreter) advance(x float64) {
	i.textMatrix = matrix{1, 0, 0, 1, x, 0}.times(i.textMatrix)
}

// show writes a string at the place where the text is.
func (i *interpreter) show(v any) {
	raw, ok := v.(string)
	if !ok || i.font == nil {
		return
	}
	var text strings.Builder
	width := 0.0
	i.font.decode(raw, func(s string, w float64, blank bool) {
		text.WriteString(s)
		w = w*i.size + i.charGap
		if blank {
			w += i.wordGap
		}
		width += w * i.scale
	})
	from := i.textMatrix.times(i.ctm)
	i.advance(width)
	if text.Len() > 0 {
		i.layout.write(text.String(), from, i.textMatrix.times(i.ctm), i.size, i.moved && !i.font.measured)
		i.moved = false
	}
}
