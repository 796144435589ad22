/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDebianMirror(t *testing.T) {
	tests := map[string]struct {
		files   map[string]string
		uri     string
		keyring string
		found   bool
	}{
		"deb822: the main archive is taken, security is not": {
			files: map[string]string{"sources.list.d/debian.sources": `Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main
Signed-By: /keys/debian-archive-keyring.gpg

# a comment
Types: deb deb-src
URIs: http://mirror.test/debian
# http://old.test/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /keys/debian-archive-keyring.gpg
`},
			uri: "http://mirror.test/debian", keyring: "/keys/debian-archive-keyring.gpg", found: true,
		},
		"one line: options, comments and other archives are passed over": {
			files: map[string]string{
				"sources.list": "# deb http://off.test/debian bookworm main\n" +
					"deb-src http://src.test/debian bookworm main\n" +
					"deb [arch=amd64] https://other.test/apt stable main\n" +
					"deb http://mirror.test/debian-security bookworm-security main\n",
				"sources.list.d/debian.list": "deb [arch=amd64 signed-by=/keys/debian.gpg] http://mirror.test/debian/ bookworm main # ours\n",
			},
			uri: "http://mirror.test/debian/", keyring: "/keys/debian.gpg", found: true,
		},
		"a disabled stanza and a key block count as none": {
			files: map[string]string{"sources.list.d/a.sources": `Types: deb
Enabled: no
URIs: http://off.test/debian
Suites: trixie
Components: main

Types: deb
URIs: http://mirror.test/debian
Suites: trixie
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc: def
`},
			uri: "http://mirror.test/debian", found: true,
		},
		"security alone is no main archive": {
			files: map[string]string{"sources.list": "deb http://mirror.test/debian-security trixie-security main\n"},
		},
		"no configuration at all": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range test.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, found := debianMirror(dir)
			if found != test.found {
				t.Fatalf("found %v, want %v", found, test.found)
			}
			if found && (got.uri != test.uri || got.keyring != test.keyring) {
				t.Errorf("got %q signed by %q", got.uri, got.keyring)
			}
		})
	}
}

func TestDebootstrapFallsBackToTheSidScript(t *testing.T) {
	scripts := t.TempDir()
	if err := os.WriteFile(filepath.Join(scripts, "trixie"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	source := aptSource{uri: "http://mirror.test/debian"}
	known := debootstrapArgs(source, "trixie", "/tree", scripts)
	if last := known[len(known)-1]; last != source.uri {
		t.Errorf("a suite with a script got %q as last argument", last)
	}
	unknown := debootstrapArgs(source, "forky", "/tree", scripts)
	if last := unknown[len(unknown)-1]; last != filepath.Join(scripts, "sid") {
		t.Errorf("a suite without a script got %q as last argument", last)
	}
}
