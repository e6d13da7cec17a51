package embed

import "container/list"

// cache holds the vectors of the most recently used queries. Its owner guards
// it.
type cache struct {
	max   int
	order *list.List // of *cached, the most recently used first
	at    map[queryKey]*list.Element
}

type cached struct {
	key    queryKey
	vector []float32
}

func newCache(entries int) cache {
	return cache{max: entries, order: list.New(), at: map[queryKey]*list.Element{}}
}

func (c *cache) get(key queryKey) ([]float32, bool) {
	e, ok := c.at[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).vector, true
}

func (c *cache) put(key queryKey, vector []float32) {
	if c.max == 0 {
		return
	}
	if e, ok := c.at[key]; ok {
		e.Value.(*cached).vector = vector
		c.order.MoveToFront(e)
		return
	}
	c.at[key] = c.order.PushFront(&cached{key, vector})
	if c.order.Len() > c.max {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.at, last.Value.(*cached).key)
	}
}
