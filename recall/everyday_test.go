package recall

import (
	"testing"

	"github.com/remora-proxy/remora/storage"
)

// Short questions about medication find it.
func TestMedicationIsLookedUp(t *testing.T) {
	for told, question := range map[string]string{
		"my cardiologist put me on metoprolol 50mg": "which meds am I on?",
		"I take metformin every morning":            "what medication do I take?",
		"the doctor prescribed me lisinopril":       "what pills am I taking?",
	} {
		ms := []storage.Memory{factOf(1, told), factOf(2, "I am reading a book about sailing"), said(3, "the train to Basel was late again")}
		e, _ := newEngine(t, patient(), ms)
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question}), ms[0].ID)
	}
}

// A word of an area does not count within an identifier, the name of a file or
// a fixed phrase.
func TestWordsThatAreNoRequest(t *testing.T) {
	facts := []string{"My son Leo is allergic to peanuts.", "I'm on azathioprine 150 mg.", "I have a herniated disc.", "I deploy with argocd"}
	ms := texts("ok then")
	for i, text := range facts {
		ms = append(ms, factOf(10+i, text))
	}
	e, _ := newEngine(t, patient(), ms)
	for _, question := range []string{
		"stretch the image to the full width", "give me a dose of reality", "roll a die for me", "can you fix the MealPlanner?", "add a test for flightSearch",
		"why does gym.go not compile, can you fix it?", "can you make the `dinner` field optional", "stretch the truth in this cover letter", "bake the textures into the model",
		"how do I exercise my option to buy shares?", "any food for thought?", "suggest a name for class RestaurantFinder", "can you rename recipe_list?",
	} {
		wantIDs(t, question, recallIDs(t, e, Request{Newest: question}))
	}
	for _, question := range []string{
		"what stretches should I do?", "what dose of ibuprofen can I take?", "how do I exercise my back?", "cook up something quick", "find an iPhone app with recipes",
		"find a recipe and put it in dinner.md", "plan meals for MealPlanner", "was soll ich zum Frühstück machen?", "Welche Übung soll ich machen?",
	} {
		if len(recallIDs(t, e, Request{Newest: question})) == 0 {
			t.Errorf("%q: got nothing, want the constraint", question)
		}
	}
}
