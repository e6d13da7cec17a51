package imports

import (
	"slices"
	"time"
)

// path returns the messages from the root to the current node. An edited
// message and a regenerated answer begin branches, and what the person last saw
// ends at the current node.
func (c *chatGPTConversation) path() []*chatGPTMessage {
	nodes := c.Mapping.values
	at := c.CurrentNode
	if _, there := nodes[at]; !there {
		at = c.newestLeaf()
	}
	var path []*chatGPTMessage
	been := map[string]bool{} // a damaged tree may have a circle
	for !been[at] {
		node, there := nodes[at]
		if !there {
			break
		}
		been[at] = true
		if node.Message != nil {
			path = append(path, node.Message)
		}
		at = node.Parent
	}
	slices.Reverse(path)
	return path
}

// newestLeaf returns the newest node that is no parent, for a conversation that
// does not name its current node.
func (c *chatGPTConversation) newestLeaf() string {
	parents := map[string]bool{}
	for _, node := range c.Mapping.values {
		parents[node.Parent] = true
	}
	newest, when := "", time.Time{}
	for _, key := range c.Mapping.keys {
		message := c.Mapping.values[key].Message
		if parents[key] || message == nil {
			continue
		}
		if newest == "" || !message.CreateTime.Before(when) {
			newest, when = key, message.CreateTime.Time
		}
	}
	return newest
}
