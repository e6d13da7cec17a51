package embed

import "container/list"

// cache keeps the vectors of the last queries. Its owner guards it.
type cache struct {
	most  int
	order *list.List // of *cached, the last used first
	at    map[queryKey]*list.Element
}

type cached struct {
	key    queryKey
	vector []float32
}

func newCache(most int) cache {
	return cache{most: most, order: list.New(), at: map[queryKey]*list.Element{}}
}

func (c *cache) take(key queryKey) ([]float32, bool) {
	e, ok := c.at[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).vector, true
}

func (c *cache) put(key queryKey, vector []float32) {
	if c.most == 0 {
		return
	}
	if e, ok := c.at[key]; ok {
		e.Value.(*cached).vector = vector
		c.order.MoveToFront(e)
		return
	}
	c.at[key] = c.order.PushFront(&cached{key, vector})
	if c.order.Len() > c.most {
		last := c.order.Back()
		c.order.Remove(last)
		delete(c.at, last.Value.(*cached).key)
	}
}
