package embed

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
)

// reply is the part of a response that is read.
type reply struct {
	Data []struct {
		Index     *int            `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
}

// decode returns the vectors of n texts by their index, scaled to length one,
// and their dimension. A vector that isn't finite, or is zero, is nil: that is
// a problem of its text alone. If all are nil the dimension is 0.
func decode(content []byte, n int) (vectors [][]float32, dimension int, err error) {
	var r reply
	if json.Unmarshal(content, &r) != nil && json.Unmarshal(withoutNaN(content), &r) != nil { // its errors would quote the content
		return nil, 0, fmt.Errorf("%w: not the JSON of embeddings", ErrResponse)
	}
	if len(r.Data) != n {
		return nil, 0, fmt.Errorf("%w: %d vectors for %d texts", ErrResponse, len(r.Data), n)
	}
	vectors = make([][]float32, n)
	seen := make([]bool, n)
	for i, d := range r.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= n || seen[at] {
			return nil, 0, fmt.Errorf("%w: indexes are no permutation", ErrResponse)
		}
		seen[at] = true
		v, err := decodeVector(d.Embedding)
		if err != nil {
			return nil, 0, err
		}
		if v != nil && dimension != 0 && len(v) != dimension {
			return nil, 0, fmt.Errorf("%w: both %d and %d", ErrDimension, dimension, len(v))
		}
		if normalize(v) {
			vectors[at], dimension = v, len(v)
		}
	}
	return vectors, dimension, nil
}

// withoutNaN replaces numbers that JSON lacks, and some servers send
// nevertheless, by null.
func withoutNaN(content []byte) []byte {
	for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
		content = bytes.ReplaceAll(content, []byte(word), []byte("null"))
	}
	return content
}

// decodeVector reads an array of numbers, or the base64 of little-endian
// float32. A vector with null, or with a number that is out of range, is nil.
func decodeVector(raw json.RawMessage) ([]float32, error) {
	if len(raw) > 0 && raw[0] == '"' {
		var b []byte
		if json.Unmarshal(raw, &b) != nil || len(b)%4 != 0 || len(b) == 0 || len(b)/4 > MaxDimensions {
			return nil, fmt.Errorf("%w: not base64 of float32", ErrResponse)
		}
		v := make([]float32, len(b)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return v, nil
	}
	var numbers []*float64
	if json.Unmarshal(raw, &numbers) != nil {
		return nil, nil
	}
	if len(numbers) == 0 || len(numbers) > MaxDimensions {
		return nil, fmt.Errorf("%w: dimension %d", ErrResponse, len(numbers))
	}
	v := make([]float32, len(numbers))
	for i, x := range numbers {
		if x == nil {
			return nil, nil
		}
		v[i] = float32(*x)
	}
	return v, nil
}

// normalize scales v to length one. It reports false if v has no direction.
func normalize(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0) || math.IsInf(sum, 0) { // zero, or not finite
		return false
	}
	length := math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) / length)
	}
	return true
}
