package mem0

import "net/http"

// feedbackRequest reports whether a memory helped.
type feedbackRequest struct {
	MemoryID string  `json:"memory_id"`
	Feedback *string `json:"feedback"`
	Reason   *string `json:"feedback_reason"`
}

// veryNegative counts as so many times negative.
const veryNegative = 2

func (c adminCall) feedback() error {
	var q feedbackRequest
	if err := c.decode(&q); err != nil {
		return err
	}
	times, helped, why := 1, false, ""
	switch {
	case q.Feedback == nil:
		times = 0 // taken back, which changes nothing here
	case *q.Feedback == "POSITIVE":
		helped = true
	case *q.Feedback == "NEGATIVE":
	case *q.Feedback == "VERY_NEGATIVE":
		times = veryNegative
	default:
		return invalid("feedback", "must be POSITIVE, NEGATIVE or VERY_NEGATIVE")
	}
	if q.Reason != nil {
		why = *q.Reason
	}
	m, err := c.locate(q.MemoryID)
	if err != nil {
		return err
	}
	for range times {
		if _, err := c.service.Feedback(c.r.Context(), c.p, ownerOf(&m), m.ID, helped, why); err != nil {
			return err
		}
	}
	return c.write(http.StatusOK, map[string]any{"id": m.ID, "feedback": q.Feedback, "feedback_reason": q.Reason})
}
