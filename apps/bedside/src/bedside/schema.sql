-- The library: books, their rendered chapters, their passages. Version 1 (PRAGMA user_version).
-- Sentences are timed from the start of their chapter; the view adds up the chapters before, so a resumed book goes on
-- exactly where the last chapter ended, and a chapter made again moves what follows it.

CREATE TABLE book (
  id               INTEGER PRIMARY KEY AUTOINCREMENT,
  source           TEXT NOT NULL UNIQUE,          -- gutenberg:<id> or sha256:<digest of the file>
  file             TEXT,                          -- below the home; null until fetched
  title            TEXT NOT NULL,
  author           TEXT NOT NULL DEFAULT '',
  language         TEXT NOT NULL DEFAULT '',
  voice            TEXT,                          -- the voice it is played in
  chapters_total   INTEGER,
  characters_total INTEGER,
  warnings         TEXT NOT NULL DEFAULT '[]',
  added_ms         INTEGER NOT NULL,
  done_ms          INTEGER
);

CREATE TABLE chapter (
  book       INTEGER NOT NULL REFERENCES book ON DELETE CASCADE,
  voice      TEXT NOT NULL,
  number     INTEGER NOT NULL,
  title      TEXT NOT NULL,
  characters INTEGER NOT NULL,
  digest     TEXT NOT NULL,                       -- of the text, the voice, its version and the formats
  file       TEXT NOT NULL,                       -- below the home
  bytes      INTEGER NOT NULL,
  samples    INTEGER NOT NULL,
  rate       INTEGER NOT NULL,
  warnings   TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (book, voice, number)
) WITHOUT ROWID;

CREATE TABLE passage (
  id       INTEGER PRIMARY KEY,
  book     INTEGER NOT NULL,
  voice    TEXT NOT NULL,
  chapter  INTEGER NOT NULL,
  ordinal  INTEGER NOT NULL,
  text     TEXT NOT NULL,
  start_ms INTEGER NOT NULL,
  end_ms   INTEGER NOT NULL,
  UNIQUE (book, voice, chapter, ordinal),
  FOREIGN KEY (book, voice, chapter) REFERENCES chapter (book, voice, number) ON DELETE CASCADE
);

CREATE VIRTUAL TABLE passage_words USING fts5 (
  text, content = 'passage', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
  INSERT INTO passage_words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER passage_removed AFTER DELETE ON passage BEGIN
  INSERT INTO passage_words (passage_words, rowid, text) VALUES ('delete', old.id, old.text);
END;

CREATE VIEW chapter_timeline AS
SELECT chapter.*,
       CAST(round(coalesce(sum(samples * 1000.0 / rate) OVER (
         PARTITION BY book, voice ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)) AS INTEGER)
         AS start_ms,
       CAST(round(samples * 1000.0 / rate) AS INTEGER) AS duration_ms
  FROM chapter;
