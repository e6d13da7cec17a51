package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// reloadable are the keys of the settings that can change while Remora runs.
var reloadable = []string{"policy", "api.prices", "log.level"}

// Reload compares c, the configuration in force, with next, which was loaded
// later. now is c with the settings of next that can change while Remora runs.
// changed are the keys of those that did, and waiting those of all other
// settings that differ: they need a restart. Rules of policy name upstreams, so
// they wait together with these.
func (c *Config) Reload(next *Config) (now Config, changed, waiting []string) {
	now = *c
	origins := map[string]string{}
	if c.loaded != nil {
		maps.Copy(origins, c.loaded.origins)
	}
	theirs := next.settings()
	others := !reflect.DeepEqual(c.Proxy.Upstreams, next.Proxy.Upstreams)
	for i, s := range now.settings() {
		if reflect.DeepEqual(s.at.target(), theirs[i].at.target()) {
			continue
		}
		if !slices.Contains(reloadable, s.key) || s.key == "policy" && others {
			waiting = append(waiting, s.key)
			continue
		}
		changed = append(changed, s.key)
		reflect.ValueOf(s.at.target()).Elem().Set(reflect.ValueOf(theirs[i].at.target()).Elem())
		maps.DeleteFunc(origins, func(key, _ string) bool { return partOf(key, s.key) })
		if next.loaded == nil {
			continue
		}
		for key, origin := range next.loaded.origins {
			if partOf(key, s.key) {
				origins[key] = origin
			}
		}
	}
	if c.loaded != nil {
		now.loaded = &loaded{origins, c.loaded.fitted, c.loaded.where}
	}
	return now, changed, waiting
}

// partOf reports whether the key path key is that of a setting, or of a value
// in it.
func partOf(key, setting string) bool {
	rest, ok := strings.CutPrefix(key, setting)
	return ok && (rest == "" || rest[0] == '[' || rest[0] == '.')
}
