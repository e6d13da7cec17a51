package api

import (
	"errors"
	"fmt"
	"strings"

	"github.com/remora-proxy/remora/proxy/policy"
	"github.com/remora-proxy/remora/recall/receipt"
)

// Price is what the tokens of some models cost, per million. The first price
// whose Model fits applies.
type Price struct {
	// Model is the name of a model, in which * stands for any characters, as in
	// the rules of the policy; "" = any. Case does not count.
	Model    string  `json:"model"`
	Currency string  `json:"currency"` // three capital letters, as in ISO 4217
	Input    float64 `json:"input"`
	// CacheRead is the price of input that was read from the prompt cache, and
	// CacheWrite of input that was written to it; 0 = that of other input.
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Output     float64 `json:"output"`
}

// Limits of prices.
const (
	MaxPrices = 200
	maxPrice  = 1_000_000 // per million tokens
)

// Validate returns all problems of a price, joined, each with the name of its
// field.
func (p *Price) Validate() error {
	var errs []error
	bad := func(field, why string) { errs = append(errs, &FieldError{field, why}) }
	if len(p.Model) > MaxTag || strings.ContainsAny(p.Model, "[]\\?") {
		bad("model", fmt.Sprintf("must have at most %d bytes, and only * stands for other characters", MaxTag))
	}
	if len(p.Currency) != 3 || strings.Trim(p.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		bad("currency", "must be three capital letters, as in ISO 4217")
	}
	for _, field := range [...]struct {
		name  string
		value float64
	}{{"input", p.Input}, {"cacheRead", p.CacheRead}, {"cacheWrite", p.CacheWrite}, {"output", p.Output}} {
		if !(field.value >= 0 && field.value <= maxPrice) {
			bad(field.name, fmt.Sprintf("must be 0..%d, for a million tokens", maxPrice))
		}
	}
	return errors.Join(errs...)
}

// Money is what the tokens of an exchange cost.
//
// Receipts count the same way for all providers: input is the total, of which
// parts were read from the cache and written to it. OpenAI and Gemini report it
// so. Anthropic reports the three apart, and the proxy adds them up.
type Money struct {
	Currency string `json:"currency"`
	// Paid is the price of all tokens: input from the cache, input written to
	// it, other input, and output.
	Paid float64 `json:"paid"`
	// Saved is what the input that was read from the cache would have cost more
	// without the cache. What writing to it costs more than other input is not
	// subtracted; it is part of Paid.
	Saved float64 `json:"saved"`
	// Added is what the inserted tokens cost, which are estimated with four
	// bytes each. Those that were replayed cost what the cache costs, if the
	// upstream read anything from it, and all others what input costs.
	Added float64 `json:"added"`
}

const million = 1_000_000

// moneyOf returns what an exchange cost, nil if there is no price for it.
func (s *access) moneyOf(r *receipt.Receipt) *Money {
	prices := s.Prices
	if replaced := s.prices.Load(); replaced != nil {
		prices = *replaced
	}
	for i := range prices {
		if p := &prices[i]; p.Model == "" || policy.Fits(p.Model, r.Model) {
			return p.of(r)
		}
	}
	return nil
}

// ReplacePolicy has other valid rules decide from now on.
func (s *Service) ReplacePolicy(rules []policy.Rule) { s.Policy.Replace(rules) }

// ReplacePrices has other valid prices apply from now on, also to the exchanges
// of the past. Afterwards they belong to the Service.
func (s *Service) ReplacePrices(prices []Price) { s.access.prices.Store(&prices) }

// of returns what an exchange cost at this price.
func (p *Price) of(r *receipt.Receipt) *Money {
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.Input
	}
	if write == 0 {
		write = p.Input
	}
	u := &r.Usage
	other := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	paid := float64(other)*p.Input + float64(u.CacheRead)*read + float64(u.CacheWrite)*write + float64(u.Output)*p.Output
	replayed := min(replayedTokens(r), u.Added)
	again := p.Input
	if u.CacheRead > 0 {
		again = read
	}
	added := float64(u.Added-replayed)*p.Input + float64(replayed)*again
	return &Money{
		Currency: p.Currency, Paid: paid / million, Saved: float64(u.CacheRead) * (p.Input - read) / million, Added: added / million,
	}
}

// replayedTokens estimates the tokens of the blocks that earlier requests had,
// as Usage.Added does.
func replayedTokens(r *receipt.Receipt) (n int64) {
	for i := range r.Inserted {
		if in := &r.Inserted[i]; in.Replayed {
			n += int64(len(in.Text)+3) / 4
		}
	}
	return n
}
