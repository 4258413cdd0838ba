package http

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// keyPrefix marks a key of the Standard Webhooks convention.
const keyPrefix = "whsec_"

// readKeys reads the signing keys of a file, one a line. Its errors name the
// line and never the key.
func readKeys(path string) ([][]byte, error) {
	raw, err := readSecret(path)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	number := 0
	for line := range bytes.Lines(raw) {
		number++
		text := strings.TrimPrefix(string(bytes.TrimSpace(line)), keyPrefix)
		if text == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			key, err = base64.RawStdEncoding.DecodeString(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d is not a key: %s and base64 is wanted", path, number, keyPrefix)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no key", path)
	}
	return keys, nil
}

// signatures signs the message once with each key, as the header
// webhook-signature wants them. An id must hold no dot: the dots part what is
// signed.
func signatures(keys [][]byte, id string, timestamp int64, body []byte) string {
	list := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(timestamp, 10) + "."))
		mac.Write(body)
		list[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(list, " ")
}
