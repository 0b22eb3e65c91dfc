-- Run once, when the database is made: a role that owns one database, and nothing else.
\set password `cat /run/secrets/db-password`
CREATE ROLE elicit LOGIN PASSWORD :'password';
CREATE DATABASE elicit OWNER elicit TEMPLATE template0 ENCODING 'UTF8';
