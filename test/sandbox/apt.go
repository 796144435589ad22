/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// aptSource is one archive that the machine's apt reads packages from.
type aptSource struct {
	uri      string
	suites   []string
	keyring  string // empty where the source names none
	security bool
	main     bool
}

// debianMirror returns the machine's own source of the Debian main archive: the
// sandbox takes packages from where the machine's owner takes them.
func debianMirror(etcApt string) (aptSource, bool) {
	best, found := aptSource{}, false
	for _, s := range readAptSources(etcApt) {
		if !s.isDebianArchive() {
			continue
		}
		if !found || (best.security && !s.security) {
			best, found = s, true
		}
	}
	return best, found && !best.security
}

func (s aptSource) isDebianArchive() bool {
	scheme := strings.HasPrefix(s.uri, "http://") || strings.HasPrefix(s.uri, "https://")
	path := strings.TrimRight(s.uri, "/")
	return scheme && s.main && (strings.HasSuffix(path, "/debian") || strings.Contains(s.keyring, "debian-archive") || s.security)
}

func readAptSources(etcApt string) []aptSource {
	var all []aptSource
	lists, _ := filepath.Glob(filepath.Join(etcApt, "sources.list.d", "*.list"))
	for _, path := range append([]string{filepath.Join(etcApt, "sources.list")}, lists...) {
		if data, err := os.ReadFile(path); err == nil {
			all = append(all, parseOneLineSources(string(data))...)
		}
	}
	deb822, _ := filepath.Glob(filepath.Join(etcApt, "sources.list.d", "*.sources"))
	for _, path := range deb822 {
		if data, err := os.ReadFile(path); err == nil {
			all = append(all, parseDeb822Sources(string(data))...)
		}
	}
	return all
}

// parseOneLineSources reads lines like "deb [signed-by=KEYRING] URI SUITE COMPONENT...".
func parseOneLineSources(text string) []aptSource {
	var all []aptSource
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		options := ""
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			options, rest, _ = strings.Cut(rest[1:], "]")
		}
		fields := strings.Fields(rest)
		if len(fields) < 3 {
			continue
		}
		keyring := ""
		for option := range strings.FieldsSeq(options) {
			if value, ok := strings.CutPrefix(option, "signed-by="); ok {
				keyring = value
			}
		}
		all = append(all, newAptSource(fields[0], fields[1:2], fields[2:], keyring))
	}
	return all
}

// parseDeb822Sources reads stanzas of "Key: value" lines, which may be continued.
func parseDeb822Sources(text string) []aptSource {
	var all []aptSource
	fields, key := map[string]string{}, ""
	flush := func() {
		all = append(all, deb822Stanza(fields)...)
		fields, key = map[string]string{}, ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			flush()
		case line[0] == ' ' || line[0] == '\t':
			fields[key] += " " + strings.TrimSpace(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			key = strings.ToLower(strings.TrimSpace(name))
			fields[key] = strings.TrimSpace(value)
		}
	}
	flush()
	return all
}

func deb822Stanza(fields map[string]string) []aptSource {
	off := strings.ToLower(fields["enabled"])
	if off == "no" || off == "false" || !slices.Contains(strings.Fields(fields["types"]), "deb") {
		return nil
	}
	keyring := fields["signed-by"]
	if !strings.HasPrefix(keyring, "/") { // a key block or a fingerprint, no file
		keyring = ""
	}
	var all []aptSource
	for uri := range strings.FieldsSeq(fields["uris"]) {
		all = append(all, newAptSource(uri, strings.Fields(fields["suites"]), strings.Fields(fields["components"]), keyring))
	}
	return all
}

func newAptSource(uri string, suites, components []string, keyring string) aptSource {
	isSecurity := func(suite string) bool {
		return strings.HasSuffix(suite, "-security") || strings.Contains(suite, "/updates")
	}
	return aptSource{
		uri:      uri,
		suites:   suites,
		keyring:  keyring,
		security: len(suites) > 0 && !slices.ContainsFunc(suites, func(s string) bool { return !isSecurity(s) }),
		main:     slices.Contains(components, "main"),
	}
}
