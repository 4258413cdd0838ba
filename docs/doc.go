// Package docs holds the project's documents. Its tests hold the documents to
// the code: what they name must exist, and what they quote must be what runs.
package docs
